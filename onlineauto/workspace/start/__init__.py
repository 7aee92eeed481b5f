"""Starts of a search that are not the oracle's: with interactions of one's own, or with another model."""
