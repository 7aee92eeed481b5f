"""The command line: parse, call, print. Nothing is learnt here."""
