"""Kernels in scripts of their own, for tests of what one process leaves for the next."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

KERNELS = """
import sys
import numpy as np
from onlineauto.jit import entry_kernel, kernel, watch_compiling

@kernel
def squared(x):
    return x * x

@kernel
def cubed(x):
    return x * squared(x)

@entry_kernel
def total(column):
    sum_ = 0.0
    for x in column:
        sum_ += squared(x) + cubed(x)
    return sum_
"""
"""Three kernels; the `total` of 0, 1, 2, 3 is 50."""


def start(script: Path, cache: Path, *words: str, **environment: str) -> subprocess.Popen[str]:
    """Start a script that keeps its kernels in `cache`."""
    return subprocess.Popen(
        [sys.executable, str(script), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"ONLINEAUTO_KERNELS": "none", "ONLINEAUTO_CACHE_DIR": str(cache)} | environment,
    )


def finish(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return the output of a process after it has ended without an error."""
    out, err = process.communicate()
    assert process.returncode == 0, err
    return out, err


def run(text: str, folder: Path, *, cache: str = "cache") -> tuple[str, str]:
    """Run the text of a script in a folder, and return what it has written."""
    script = folder / "script.py"
    script.write_text(text)
    return finish(start(script, folder / cache))


def compiled(cache: Path) -> list[Path]:
    """Return the files of kernels in a cache."""
    return sorted(cache.rglob("*.o"))
