"""Convert decimal text to numbers."""
