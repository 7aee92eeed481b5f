"""Decimal text to numbers."""
