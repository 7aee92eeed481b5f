"""What a user writes, for type checkers to read; nothing here is run."""
