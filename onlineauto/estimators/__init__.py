"""How good is a config? Anytime-valid bounds on the reward of a policy from logged, weighted examples."""
