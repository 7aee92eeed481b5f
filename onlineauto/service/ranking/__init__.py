"""Ranking: from a question to a line of the log, and from a pmf to an action whose draw is repeatable."""
