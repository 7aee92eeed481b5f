"""The loop over events, what it works with, and the buffers it fills."""
