"""Workspace: a model that reads, predicts and learns, and the files it is saved in."""
