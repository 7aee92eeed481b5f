"""Vowpal Wabbit 9.11.9 to the bit: readers, layout, control plane, refusals and a loop of its own."""
