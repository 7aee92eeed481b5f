"""Generators: documentation and types that are made from the registry of options."""
