"""The search: namespaces, configs, oracles, leases, champion. Decisions are made by pure functions."""
