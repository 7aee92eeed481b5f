"""Tests of the oldest and the newest Numba of the declared range, which must agree; see ``.ci/oldest``."""
