"""On what a measurement was made."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path


def machine() -> dict[str, str | int]:
    """Return the processor, its cores and the operating system."""
    return {"cpu": _processor(), "cores": os.cpu_count() or 0, "system": platform.system()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that matter."""
    packages = ("numba", "numpy", "vowpalwabbit", "onlineauto")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def commit() -> str:
    """Return the commit that is checked out, with ``+`` if files differ from it; empty if there is none."""
    here = Path(__file__).parent
    name = _git("rev-parse", "--short=12", "HEAD", directory=here)
    changed = _git("status", "--porcelain", "--untracked-files=no", directory=here)
    return name + "+" if changed else name


def _git(*words: str, directory: Path) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=directory, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()
