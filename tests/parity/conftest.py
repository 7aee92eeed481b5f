"""Fixtures of the parity tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.parity.vw import VwRunner


@pytest.fixture(scope="session")
def vw() -> Iterator[VwRunner]:
    with VwRunner() as worker:
        yield worker
