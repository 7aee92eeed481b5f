"""The search: namespaces, configs, oracles, leases, champion; decided by pure functions of plain values."""
