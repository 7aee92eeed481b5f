"""Code of a user, for type checkers to read; nothing here is run."""
