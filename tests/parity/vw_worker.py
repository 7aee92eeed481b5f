"""The process that runs VW: imports it once, then forks for every run.

Reads one JSON object a line, ``{"argv": [...], "directory": ..., "stdout": ..., "stderr": ...}``, and answers
each with one line, the run's exit code.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback

SECONDS = 300
"""A run that takes longer is killed."""


def run(argv: list[str], *, directory: str, stdout: str, stderr: str) -> int:
    """Run VW in this process, its output in the two files; the exit code."""
    import vowpalwabbit

    os.chdir(directory)
    for path, descriptor in ((stdout, 1), (stderr, 2)):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, descriptor)
        os.close(opened)
    code = 0
    try:
        vowpalwabbit.Workspace(arg_list=argv).finish()
    except Exception:  # whatever VW raises is an outcome to report
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    return code


def main() -> None:
    """Answer requests until the standard input ends."""
    import vowpalwabbit  # noqa: F401 - so that the children need not load it

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.alarm(SECONDS)
            os._exit(run(**request))
        status = os.waitpid(child, 0)[1]
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
