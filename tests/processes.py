"""Python in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def python(*words: str, code: int | None = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words from the top of the repository, and return what it has printed.

    The test fails if the exit code is another one than `code`; None stands for any.
    """
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | environment,
    )
    assert code in (None, done.returncode), done.stderr
    return done
