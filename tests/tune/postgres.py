"""A PostgreSQL server for tests: on a socket in a folder of its own, with a new database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from typing import Any

import psycopg


def find_programs() -> Path | None:
    """Return the folder of PostgreSQL's programs, as Debian installs them, or None."""
    found = shutil.which("pg_ctl")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*folders, *([Path(found).resolve().parent] if found else [])]:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    return None


class Server:
    """A server that tests start and stop.

    Parameters
    ----------
    programs : Path
        The folder of `initdb` and `pg_ctl`.
    """

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self._numbers = count()
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))  # a socket's path has to be short
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:  # as whom no server starts
            entry = pwd.getpwnam("postgres")
            os.chown(self._folder, entry.pw_uid, entry.pw_gid)
            self._user = {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        self._run("initdb", "-A", "trust", "-U", "postgres", "-N", "-E", "UTF8", "--locale=C")
        self.start()

    def start(self) -> None:
        """Start the server and wait until it answers; after a kill it syncs the files of all databases."""
        options = f"-k {self._folder} -c listen_addresses= -c max_connections=60 -c shared_buffers=16MB"
        self._run("pg_ctl", "-o", options, "-w", "-t", "300", "-l", str(self._folder / "log"), "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is as if it had been killed."""
        self._run("pg_ctl", "-m", mode, "-w", "-t", "300", "stop")

    def remove(self) -> None:
        """Stop the server and remove what it has written."""
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def new_database(self) -> str:
        """Make an empty database and return its URL."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(host=str(self._folder), user="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return f"postgresql://postgres@/{name}?host={self._folder}"

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *words]
        subprocess.run(
            command,
            check=True,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            **self._user,
        )
