"""Runs of the `vowpalwabbit` package, the reference of every parity test."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from tests.parity.result import Result, Weights

_WORKER = Path(__file__).with_name("vw_worker.py")
_CELL = re.compile(r"(\d+):([-+]?(?:0x|inf|nan).*)")
_SCALAR = re.compile(r"([A-Za-z_][\w:. ]*?)[ :]([^ :]+)")
_CACHE = ("using no cache", "creating cache_file", "using cache_file", "can't open")


def printed_lines(stderr: str) -> tuple[str, ...]:
    """Lines of the standard error but those on the cache, which only VW needs for ``--passes``."""
    return tuple(line for line in stderr.splitlines() if not line.startswith(_CACHE))


def read_readable_model(text: str) -> tuple[dict[str, str], Weights]:
    """Split a ``--readable_model --hexfloat_weights`` file into its scalars and its cells."""
    state: dict[str, str] = {}
    index: list[int] = []
    values: list[list[float]] = []
    for line in text.splitlines():
        if cell := _CELL.fullmatch(line):
            index.append(int(cell[1]))
            values.append([float.fromhex(value) for value in cell[2].split()])
        elif scalar := _SCALAR.fullmatch(line):
            state[scalar[1]] = scalar[2]
    state.pop("Checksum:", None)
    fields = len(values[0]) if values else 1
    return state, Weights(
        index=np.array(index, np.int64), values=np.array(values, np.float32).reshape(len(index), fields)
    )


def _text(path: Path) -> str:
    return path.read_text("utf-8", "backslashreplace") if path.exists() else ""


class VwRunner:
    """A worker process that runs VW as its command line would.

    Use it as a context manager; each `run` is a separate process.
    """

    def __init__(self) -> None:
        self._worker = subprocess.Popen(
            [sys.executable, str(_WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.communicate()

    def run(self, flags: Sequence[str], *, file: Path) -> Result:
        """Run VW with `flags` on `file`; it leaves its output files beside that file."""
        directory = file.parent
        argv = [*flags, "-d", file.name, "-p", "predictions.txt"]
        argv += ["--readable_model", "vw.model", "--hexfloat_weights"]
        for output in ("predictions.txt", "vw.model"):
            (directory / output).unlink(missing_ok=True)
        code, out, err = self.command_line(argv, directory=directory)
        state, weights = read_readable_model(_text(directory / "vw.model"))
        return Result(
            predictions=tuple(_text(directory / "predictions.txt").split("\n")[:-1]),
            weights=weights,
            state=state,
            stderr=printed_lines(err),
            stdout=out,
            code=code,
        )

    def command_line(self, argv: Sequence[str], *, directory: Path) -> tuple[int, str, str]:
        """Run VW, with a cache for passes; return its exit code, output and standard error."""
        cache = ["--cache_file", "vw.cache", "-k"] if "--passes" in argv else []
        code = self._request([*argv, *cache], directory=directory)
        return code, _text(directory / "vw.out"), _text(directory / "vw.err")

    def _request(self, argv: Sequence[str], *, directory: Path) -> int:
        assert self._worker.stdin is not None
        assert self._worker.stdout is not None
        request = {
            "argv": list(argv),
            "directory": str(directory),
            "stdout": "vw.out",
            "stderr": "vw.err",
        }
        self._worker.stdin.write(json.dumps(request) + "\n")
        self._worker.stdin.flush()
        return int(self._worker.stdout.readline())
