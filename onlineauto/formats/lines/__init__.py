"""What the readers of text and JSON share: lines, marks, labels, diagnostics."""
