"""Events in columns, hashes of names, namespaces and interactions."""
