"""HTTP: the wire formats of the service, and what they stand behind: tokens, limits, metrics, a page."""
