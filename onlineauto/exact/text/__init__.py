"""Readers of VW text with the oddities and warnings of Vowpal Wabbit 9.11.9."""
