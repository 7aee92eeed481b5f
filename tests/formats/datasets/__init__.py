"""Parquet and Arrow datasets as events."""
