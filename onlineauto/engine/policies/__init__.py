"""Explorers that have several models: bag, cover, rnd, ε-decay."""
