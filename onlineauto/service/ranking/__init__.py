"""Ranking: from a request to a line of the log, and from a pmf to an action whose draw is repeatable."""
