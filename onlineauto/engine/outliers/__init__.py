"""Outliers: numbers of events that are far beyond all others, and events that are not learnt for them."""
