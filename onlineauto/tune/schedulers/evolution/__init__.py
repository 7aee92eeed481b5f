"""Where the parents of DEHB come from, and how they have children."""
