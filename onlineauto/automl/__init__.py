"""The search: namespaces, configs, oracles, leases, champion; decisions as pure functions of plain values."""
