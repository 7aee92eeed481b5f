"""A service in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

ROOT = Path(__file__).resolve().parents[2]
MODEL = ("--cb_explore_adf", "--automl", "4", "--bit_precision", "12", "--epsilon", "0.2")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Service:
    """Runs ``onlineauto serve`` over a folder until the end of a ``with`` block."""

    def __init__(self, folder: Path, *words: str, model: tuple[str, ...] = MODEL) -> None:
        self.folder, self.port, self.words = folder, free_port(), (*model, *words)
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder.with_suffix(".stderr")

    def start(self) -> Self:
        command = [sys.executable, "-m", "onlineauto", "serve", str(self.folder), "--port", str(self.port)]
        with self.log.open("ab") as log:
            environment = {**os.environ, "PYTHONPATH": str(ROOT)}
            self.process = subprocess.Popen([*command, *self.words], stderr=log, env=environment)
        return self

    def wait(self) -> Self:
        """Wait until it is ready."""
        for _ in range(600):
            try:
                if httpx.get(f"{self.url}/readyz").status_code == 200:
                    return self
            except httpx.TransportError:
                time.sleep(0.05)
            if self.process.poll() is not None:
                break
        raise AssertionError(self.log.read_text())

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)

    def __enter__(self) -> Self:
        return self.start().wait()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.stop()
