"""Verbs about the machine: compile its kernels, and check the installation."""
