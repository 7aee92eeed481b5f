"""A service in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from tests.waiting import PATIENCE, until

ROOT = Path(__file__).resolve().parents[2]
MODEL = ("--cb_explore_adf", "--automl", "4", "--bit_precision", "12", "--epsilon", "0.2")


def held_port() -> socket.socket:
    """Return a socket that holds a free port: nobody else is given it, and a service can listen there."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    return held


class Service:
    """Runs ``onlineauto serve`` over a folder until the end of a ``with`` block."""

    verb = "serve"

    def __init__(self, folder: Path, *words: str, model: tuple[str, ...] = MODEL) -> None:
        at_once = () if {"--follow", "--learn_at", "--endpoints"} & {*words} else ("--learn_at", "reward")
        self.folder, self.words = folder, (*model, *at_once, *words)
        self.prefix: list[str] = []  # what the command is run by
        self._held = held_port()
        self.port = int(self._held.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder.with_suffix(".stderr")

    def start(self) -> Self:
        command = [
            *self.prefix,
            sys.executable,
            "-m",
            "onlineauto",
            self.verb,
            str(self.folder),
            "--port",
            str(self.port),
        ]
        with self.log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.process = subprocess.Popen([*command, *self.words], stderr=log, env=environment)
        return self

    def wait(self) -> Self:
        """Wait until it is ready."""
        until(lambda: self._is_ready() or self.process.poll() is not None, what=self.log.read_text)
        assert self.process.poll() is None, self.log.read_text()
        return self

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._held.close()

    def stop(self) -> int:
        self.process.terminate()
        self._held.close()
        return self.process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self.start().wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.stop()
