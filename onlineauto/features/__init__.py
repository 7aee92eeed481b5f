"""Define blocks of events in columns, hashes of names, namespaces and interactions."""
