"""Fixtures of the parity tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.parity.wheel import Wheel

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def wheel() -> Iterator[Wheel]:
    with Wheel() as worker:
        yield worker
