"""Verbs about clusters."""
