"""Workers that are actors of a Ray cluster. Ray is imported only when a study runs on it.

Only Ray's core is used: long-lived actors with one call per step. JSON text, bytes and numbers are exchanged
between machines. Ray itself pickles the calls, so all machines of a cluster must trust each other. The
records of a study are never pickled.
"""
