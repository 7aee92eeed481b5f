"""Outer tuners: spaces, schedulers, searchers, and studies that many processes share."""
