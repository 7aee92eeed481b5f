"""The model of a workspace in blocks: what a worker pulls, learns and pushes, and how that is combined."""
