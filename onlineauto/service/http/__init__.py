"""HTTP: the wire formats of the service, tokens, limits, metrics and the live page."""
