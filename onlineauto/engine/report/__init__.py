"""What a run prints and writes: progress, predictions, metrics, audits, summaries."""
