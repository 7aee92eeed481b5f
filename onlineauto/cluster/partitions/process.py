"""A worker process of `local.ProcessPool`: learns the chunks that are named on standard input."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec

from onlineauto.cluster.partitions.local import read_message, write_all
from onlineauto.cluster.partitions.messages import base_of_tree, chunk_of_tree, end_to_tree
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.errors import OnlineautoError
from onlineauto.features.namespaces import Namespaces
from onlineauto.workspace.options import REGISTRY


def serve(folder: str, command: str) -> None:
    """Learn the chunks that are named on standard input, until it ends."""
    worker, namespaces = Worker(REGISTRY.parse(command)), Namespaces()
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # nothing else may write to the pipe
    for line in sys.stdin.buffer:
        task = msgspec.json.decode(line)
        if task == "leave":
            return
        try:
            if task["base"]:
                worker.adopt(base_of_tree(read_message(Path(folder, task["base"]))))
            chunk = chunk_of_tree(read_message(Path(folder, task["chunk"])), namespaces)
            namespaces = chunk.block.namespaces
            end = worker.learn(chunk.block, chunk.seed)
            path = Path(folder, task["end"])
            path.unlink(missing_ok=True)
            with path.open("xb", buffering=0) as file:
                write_all(file, end_to_tree(end))
            answer = {"end": task["end"]}
        except OnlineautoError as error:
            answer = {"error": str(error)}
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
