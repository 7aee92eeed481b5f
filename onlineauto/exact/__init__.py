"""Vowpal Wabbit 9.11.9 to the bit: its readers, layout, control plane, loop, and what is refused."""
