"""Vowpal Wabbit 9.11.9 bit for bit: readers, layout, control plane, loop, and the rejected options."""
