"""Files of blocks: events that were parsed once."""
