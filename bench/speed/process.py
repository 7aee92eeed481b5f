"""Whole processes of the command line: their time and memory, and what a cold start compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets.generate import write

KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "automl": ("narrow", ("--cb_explore_adf", "--automl", "4")),
    "automl exact": ("narrow", ("--cb_explore_adf", "--automl", "4", "--vw_exact")),
    "dr": ("narrow", ("--cb_adf", "--cb_type", "dr", "-q", "::")),
    "simple": ("regression", ("--passes", "2")),
}
"""Streams and flags that between them need most of the kernels."""

_RUN = """
import json, resource, subprocess, sys, time
begin = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                      stderr=subprocess.DEVNULL, encoding="utf-8")
seconds, used = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6
print(json.dumps({"code": done.returncode, "seconds": seconds, "cpu": used.ru_utime + used.ru_stime,
                  "peak_mb": peak, "output": done.stdout}))
"""
"""Starts a process from a small one: a large parent would count into the peak of its child."""


def started(
    words: Sequence[str], *, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, Any]:
    """Run Python with some words; return its code, seconds, CPU seconds, peak in 10^6 bytes, and output."""
    command = [sys.executable, "-c", _RUN, sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=cwd)
    numbers: dict[str, Any] = json.loads(done.stdout)
    return numbers


def run(flags: Sequence[str], *, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Run ``onlineauto`` with some words; return the numbers of `started`."""
    numbers = started(["-m", "onlineauto", *flags], environment=environment)
    del numbers["output"]
    return numbers


def cold(*, events: int = 64) -> dict[str, float]:
    """Compile everything into an empty cache by ``onlineauto warmup``, then run all `KINDS`.

    Return the ``seconds`` of the former, and how many kernels the latter still compiled: ``missed``.
    """
    with tempfile.TemporaryDirectory() as directory:
        cache = {"ONLINEAUTO_CACHE_DIR": str(Path(directory, "cache")), "ONLINEAUTO_COMPILE_PROCESSES": "1"}
        environment = os.environ | cache
        seconds = _finished(["warmup"], environment)["seconds"]
        known = _kernels(directory)
        for kind, flags in KINDS.values():
            path = Path(directory, f"{kind}.txt")
            write(path, kind=kind, events=events)
            _finished([*flags, "--quiet", "-d", str(path)], environment)
        return {"seconds": seconds, "missed": float(_kernels(directory) - known)}


def _finished(flags: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    done = run(flags, environment=environment)
    if done["code"] != 0:
        raise RuntimeError(f"onlineauto {' '.join(flags)} ended with code {done['code']:.0f}")
    return done


def _kernels(directory: str) -> int:
    return sum(1 for _ in Path(directory, "cache").rglob("*.nbc"))
