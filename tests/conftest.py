"""One setting of hypothesis for all tests: the same examples in every run."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")
