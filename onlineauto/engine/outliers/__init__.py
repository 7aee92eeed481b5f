"""Outliers: numbers of events far beyond all others, and the events that are not learnt because of them."""
