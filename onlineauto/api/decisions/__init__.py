"""Decisions: drawing, waiting for rewards, logging, and joining with later rewards."""
