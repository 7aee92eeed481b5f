"""One event: its state, its passes over actions, its outcome."""
