"""The process that times VW: imports it once, then forks for every run.

Reads one JSON object a line, ``{"argv": [...], "directory": ...}``, and answers each with one: ``{"seconds":
..., "cpu": ..., "loss": ...}`` for ``Workspace(arg_list).finish()`` and nothing else, or ``{"error": ...}``.
The processor's seconds are those of all threads; the loss is VW's average.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from typing import Any

SECONDS = 600
"""A run that takes longer is killed."""


def run(argv: list[str], *, directory: str) -> dict[str, Any]:
    """Run VW in this process, its output thrown away, and say how long it took."""
    import vowpalwabbit

    os.chdir(directory)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    try:
        begin, cpu = time.perf_counter(), time.process_time()
        model = vowpalwabbit.Workspace(arg_list=argv)
        loss = model.get_sum_loss() / max(model.get_weighted_examples(), 1.0)
        model.finish()
        return {"seconds": time.perf_counter() - begin, "cpu": time.process_time() - cpu, "loss": loss}
    except Exception:  # whatever VW raises is an outcome to report
        return {"error": traceback.format_exc()}


def run_apart(request: dict[str, Any]) -> dict[str, Any]:
    """Run in a child, so that every run has the heap of a process that has only imported VW."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        os.write(writable, json.dumps(run(**request)).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as pipe:
        answer = pipe.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not answer:
        return {"error": f"VW ended with code {code}"}
    parsed: dict[str, Any] = json.loads(answer)
    return parsed


def main() -> None:
    """Say what the import took, then answer requests until the standard input ends."""
    begin = time.perf_counter()
    import vowpalwabbit  # noqa: F401 - so that the children need not load it

    print(json.dumps({"import_seconds": time.perf_counter() - begin}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_apart(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
