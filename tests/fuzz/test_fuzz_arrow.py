"""Files of Parquet and Arrow with flipped bits are read by a child process, which must neither die nor hang.

As many as one likes, of any seed::

    ARROW_FILES=20000 ARROW_SEED=3 python -m pytest -m fuzz tests/fuzz/test_fuzz_arrow.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from queue import Empty, Queue
from threading import Thread

import pytest

pytestmark = pytest.mark.lane("ci")

SECONDS = 60
"""Maximum time for a file; the first one includes the compilation of kernels."""


class Child:
    """A process that reads damaged files, and is started again when it has died."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def answer(self, kind: str, seed: int) -> str:
        """Return the outcome of a file: the output of the process, ``died`` or ``hung``."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.fuzz.arrow_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        process, lines = self._process, Queue[str]()
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{kind} {seed}\n")
            process.stdin.flush()
        Thread(target=lambda: lines.put(process.stdout.readline()), daemon=True).start()  # type: ignore[union-attr]
        try:
            text = lines.get(timeout=SECONDS)
        except Empty:
            text = "hung"
        if text in ("", "hung"):
            self.close()
        return text.strip() or f"died {process.returncode}"

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def became(kind: str, files: int, seed: int) -> Counter[str]:
    """Return how often damaged files were learnt or refused; any other answer is an error."""
    child, found = Child(), Counter[str]()
    try:
        for number in range(seed, seed + files):
            text = child.answer(kind, number)
            assert text.split()[0] in ("learnt", "refused"), f"{kind} {number}: {text}"
            found[text.split()[0]] += 1
    finally:
        child.close()
    return found


@pytest.mark.parametrize("kind", ["parquet", "ipc", "stream", "frame", "csv"])
def test_flipped_bits_do_not_end_the_process(kind: str) -> None:
    assert sum(became(kind, 40, seed=0).values()) == 40


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", ["parquet", "ipc", "stream", "frame", "csv"])
def test_two_thousand_files_with_flipped_bits(kind: str) -> None:
    files, seed = int(os.environ.get("ARROW_FILES", "2000")), int(os.environ.get("ARROW_SEED", "1000"))
    assert sum(became(kind, files, seed=seed).values()) == files
