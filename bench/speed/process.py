"""Whole processes of the command line: their time and memory, and what a cold start compiles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

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
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL).returncode
seconds = time.perf_counter() - begin
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
print(json.dumps({"code": code, "seconds": seconds, "peak_mb": peak / 1e6}))
"""
"""Starts a process from a small one: a large parent would count into the peak of its child."""


def run(flags: Sequence[str], *, environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """Run ``onlineauto`` with some words; its exit code, seconds and peak memory in MB (10^6 bytes)."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, sys.executable, "-m", "onlineauto", *flags],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    numbers: dict[str, float] = json.loads(done.stdout)
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
