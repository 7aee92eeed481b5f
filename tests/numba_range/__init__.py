"""What the oldest and the newest Numba of the declared range must agree on; see ``.ci/oldest``."""
