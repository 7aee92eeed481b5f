"""Learning of the service: what the log says, exactly once; snapshots, a history, values of policies."""
