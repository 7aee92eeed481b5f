"""A short load of the service: nobody is refused, and a rank takes milliseconds."""

from __future__ import annotations

import pytest

from tests.bench.service import service

pytestmark = pytest.mark.bench


def test_a_load_is_served() -> None:
    found = service(connections=8, seconds=3.0)
    assert found.failed == 0
    assert found.pairs_per_second > 50
    assert found.p99 < 500
