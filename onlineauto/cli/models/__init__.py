"""Verbs about model files: inspect one, and merge several into one."""
