"""Streaming online AutoML for contextual bandits."""
