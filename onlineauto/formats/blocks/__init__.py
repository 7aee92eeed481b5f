"""Files of blocks, which store parsed events."""
