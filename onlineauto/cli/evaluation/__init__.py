"""The verb ``evaluate``: values of policies from a log, as a table and a picture."""
