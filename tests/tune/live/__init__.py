"""Tests of trials that are live learners."""
