"""The loop: ranks, rewards and learning over one log, without HTTP."""
