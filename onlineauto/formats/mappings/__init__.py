"""Readers of events that are Python mappings, with names of features."""
