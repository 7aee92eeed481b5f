"""Files of blocks, which hold events that were parsed once."""
