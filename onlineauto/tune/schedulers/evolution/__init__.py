"""The parents of DEHB, and their children."""
