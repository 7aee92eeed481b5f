"""Shared parts of the readers of text and JSON: lines, marks, labels, diagnostics."""
