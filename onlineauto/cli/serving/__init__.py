"""Verbs of the service: run one, and look into its folder."""
