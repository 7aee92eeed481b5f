"""Python runs whose kernels are compiled to check every index; their cache is another one."""

from __future__ import annotations

import subprocess

from tests.processes import python


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words from the top of the repository."""
    return python(*words, code=None, NUMBA_BOUNDSCHECK="1")


def run_tests(choice: str, *paths: str) -> str:
    """Run the tests in these files that `-k` chooses, also those of a push; return the output."""
    words = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "not bounds and not slow"]
    done = run(*words, "-k", choice, *paths)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout
