"""A contextual-bandit service: ranks over HTTP, joins rewards by its log, and learns from it exactly once."""
