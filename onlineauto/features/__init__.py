"""TODO features."""
