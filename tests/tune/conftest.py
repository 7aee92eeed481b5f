"""Databases for tests: SQLite in a folder of the test, and PostgreSQL where it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tune.postgres import Server, find_programs


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start a server for all tests of this process."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed")
    server = Server(programs)
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'study.db'}"
    server: Server = request.getfixturevalue("server")
    return server.new_database()
