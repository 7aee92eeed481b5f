"""Workers, controllers and the server are killed at random: ``pytest -m chaos``, for minutes; see `chaos`."""

from __future__ import annotations

import os

import pytest

from tests.tune.chaos import chaos
from tests.tune.postgres import Server

pytestmark = pytest.mark.chaos
SECONDS = 60 * float(os.environ.get("ONLINEAUTO_CHAOS_MINUTES", "10"))


def test_studies_survive_kills_of_workers_controllers_and_servers(
    url: str, request: pytest.FixtureRequest
) -> None:
    server: Server | None = None if url.startswith("sqlite") else request.getfixturevalue("server")
    assert chaos(url, seconds=SECONDS, server=server)
