"""Learning of the service: exactly once from the log; snapshots, a history of models, values of policies."""
