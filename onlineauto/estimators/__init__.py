"""Anytime-valid bounds on the value of a policy, and tests of one policy against another, from logs."""
