"""A worker process of `local.ProcessPool`: learns the chunks that are named on standard input."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec

from onlineauto.cluster.partitions.local import read_message, write_message
from onlineauto.cluster.partitions.server import Server


def serve(folder: str, command: str) -> None:
    """Learn the chunks that are named on standard input, until it ends."""
    server = Server(command)
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nothing else may write to the pipe
    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line)
        if task == "leave":
            return
        try:
            base = None if task["base"] is None else read_message(Path(folder, task["base"]))
            answer = server.answer(base, read_message(Path(folder, task["chunk"])))
            if not isinstance(answer, dict):
                write_message(Path(folder, task["end"]), answer)
                answer = {"end": task["end"]}
        except OSError as error:  # such as a full disk
            if not os.path.exists(folder):  # noqa: PTH110 - another worker has removed it
                return
            answer = {"failed": str(error)}
        try:
            output.write(msgspec.json.encode(answer) + b"\n")
        except BrokenPipeError:
            break
    shutil.rmtree(folder, ignore_errors=True)  # the coordinator was killed


if __name__ == "__main__":
    serve(*sys.argv[1:])
