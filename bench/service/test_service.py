"""A short load of the service: nobody is refused, and a rank takes milliseconds."""

from __future__ import annotations

import pytest

from bench.service.__main__ import service
from bench.service.malformed import malformed
from bench.service.margin import by_service
from bench.service.soak import soak

pytestmark = pytest.mark.bench


def test_a_load_is_served() -> None:
    found = service(connections=8, seconds=3.0)
    assert found.failed == 0
    assert found.pairs_per_second > 50
    assert found.p99 < 500


def test_users_click_more_than_with_pairs_of_all_namespaces() -> None:
    """The margin off-line is 0.12, with a standard error of 0.02 over four seeds."""
    visits, seed = 2000, 1
    found, pairs = (by_service(flags, visits=visits, seed=seed) for flags in ("--automl 4", "-q ::"))
    assert found > pairs + 0.03


def test_hostile_requests_beside_a_load_are_refused_and_nothing_lags() -> None:
    rows = soak(seconds=20.0, pairs=50.0, connections=8, every=5.0)
    assert sum(row["failed"] for row in rows) == 0
    assert rows[-1]["ranked"] > 100
    assert rows[-1]["mb"] < 600


def test_malformed_bodies_are_refused_over_a_socket() -> None:
    answers = malformed(5000, seed=3)
    assert answers.errors == []
    assert answers.statuses.total() == 5000
