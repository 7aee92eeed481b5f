"""The stack of the live configs and of the members beside them, and what it learns."""
