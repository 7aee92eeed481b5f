"""The two kinds of worker processes, as seen by who asks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

VW_WORKER = Path(__file__).with_name("vw_worker.py")
"""The worker that runs VW."""
OUR_WORKER = Path(__file__).with_name("our_worker.py")
"""Runs onlineauto."""


class WorkerError(RuntimeError):
    """A run failed, or its process ended."""


class Worker:
    """A process that answers requests of one JSON line with one JSON line; a context manager."""

    def __init__(
        self, script: Path, *, directory: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=directory,
            env=_environment() if environment is None else environment,
        )
        self.greeting = self._read()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()

    def ask(self, **request: Any) -> dict[str, float]:
        """Send a request and wait for the numbers."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise WorkerError(f"the worker ended with code {self._process.wait()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return answer


def _environment() -> dict[str, str]:
    """Return this process's environment, in which this repository's packages come first."""
    paths = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
