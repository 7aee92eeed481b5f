"""The ensemble: members, and the combiner that weighs their scores and those of the live configs."""
