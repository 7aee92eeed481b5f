"""Ranking: from what is asked to a line of the log, and from a pmf to an action that can be drawn again."""
