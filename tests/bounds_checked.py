"""Python runs whose kernels are compiled to check every index; their cache is another one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["run"]

ROOT = Path(__file__).resolve().parent.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words from the top of the repository."""
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1"}
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, check=False, cwd=ROOT, env=environment
    )
