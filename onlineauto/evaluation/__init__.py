"""Off-policy estimates of the values of policies, from a log."""
