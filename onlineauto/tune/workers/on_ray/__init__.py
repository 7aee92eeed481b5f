"""Workers that are actors of a Ray cluster. Ray is imported when a study is run on it, and not before.

Only Ray's core is used: actors that stay alive, one call for each step. What crosses the border between
machines is text of JSON, bytes and numbers. Ray itself writes the calls with pickle, so a cluster is a place
where everybody trusts everybody; what a study keeps is never pickled.
"""
