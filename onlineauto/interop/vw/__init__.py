"""Vowpal Wabbit's model files, read and written."""
