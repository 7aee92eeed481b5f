"""The running search: live configs, evidence, drift, screening, journal."""
