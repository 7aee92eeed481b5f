"""Options of a run, and the checks of their combinations."""
