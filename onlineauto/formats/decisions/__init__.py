"""Decisions: their lines in logs, with one struct, one writer and one clock; how they wait for rewards."""
