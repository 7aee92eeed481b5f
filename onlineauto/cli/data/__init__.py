"""Verbs about data."""
