"""Explorers that hold several models: bag, cover, rnd, ε-decay."""
