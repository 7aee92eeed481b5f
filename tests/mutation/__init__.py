"""Mutation of kernels: small changes, one at a time, which the tests should notice."""
