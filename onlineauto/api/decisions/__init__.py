"""Decisions: how they are drawn, wait for rewards, are logged, and joined with rewards that came later."""
