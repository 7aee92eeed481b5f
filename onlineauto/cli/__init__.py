"""The command line: parse, call, print. It contains no learning code."""
