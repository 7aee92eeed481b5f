"""The elastic protocol, without input and output: who owns which blocks, and how that changes."""
