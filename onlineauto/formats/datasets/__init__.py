"""Parquet and Arrow datasets as blocks of events."""
