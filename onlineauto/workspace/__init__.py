"""Workspace: a model that reads, predicts and learns, and its files."""
