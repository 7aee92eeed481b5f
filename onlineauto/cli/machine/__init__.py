"""Verbs about the machine: compile kernels, check the installation, complete words in the shell."""
