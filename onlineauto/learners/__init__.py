"""Rules that learn from one example at a time, and the targets they learn."""
