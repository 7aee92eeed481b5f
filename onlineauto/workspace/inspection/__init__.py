"""What a model knows, for people: weights by name, audits, readable models."""
