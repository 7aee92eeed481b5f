"""Verbs about the machine: compile its kernels, check the installation, complete words in its shell."""
