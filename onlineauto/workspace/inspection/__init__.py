"""Descriptions of a model for people: weights by name, audits, readable models."""
