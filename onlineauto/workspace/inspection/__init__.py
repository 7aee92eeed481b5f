"""Human-readable descriptions of a model: weights by name, audits, readable models."""
