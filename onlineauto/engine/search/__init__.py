"""The search at work: live configs, evidence, drift, screening, journal."""
