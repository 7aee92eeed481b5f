"""From sources to blocks: reading ahead, passes, held-out events, position."""
