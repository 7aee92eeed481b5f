"""Mappings: events as Python values, with names for features."""
