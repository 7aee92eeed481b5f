"""TODO explorers."""
