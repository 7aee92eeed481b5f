"""The sharded streaming learner: workers and servers come and go in mid-stream."""
