"""From scores to probabilities of actions."""
