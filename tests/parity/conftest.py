"""Fixtures of the parity tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.parity.wheel import Wheel


@pytest.fixture(scope="session")
def wheel() -> Iterator[Wheel]:
    with Wheel() as worker:
        yield worker
