"""Values of policies, estimated off-policy from a log."""
