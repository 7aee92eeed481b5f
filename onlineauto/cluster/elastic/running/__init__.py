"""Running a sharded learner: nodes as threads or as actors of Ray, and the hub that controls them."""
