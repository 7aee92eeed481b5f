"""The schema of state, and its codec: what each record of arrays has, described once."""
