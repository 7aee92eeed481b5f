"""Starts of a search without the oracle: with the caller's interactions, or with another model."""
