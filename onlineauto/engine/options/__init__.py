"""Options of a run, and the checks of how options go together."""
