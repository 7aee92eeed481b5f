"""Everything that a run prints and writes: progress, predictions, metrics, summaries."""
