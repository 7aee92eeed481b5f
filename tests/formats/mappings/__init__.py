"""Tests of events given as mappings."""
