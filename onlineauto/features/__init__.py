"""Columns of events, hashes, namespaces and interactions."""
