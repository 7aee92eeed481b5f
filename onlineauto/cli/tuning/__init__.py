"""Verbs about studies: tuning, workers, and lists of studies."""
