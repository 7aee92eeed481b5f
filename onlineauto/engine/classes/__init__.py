"""The ensemble of a classification: all classes at once, over the same inputs."""
