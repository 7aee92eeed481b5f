"""Verbs about model files: what is in one, and several merged to one."""
