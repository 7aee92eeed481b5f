"""TODO learners."""
