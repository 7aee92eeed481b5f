"""The loop: ranks, rewards and learning by one log, without HTTP."""
