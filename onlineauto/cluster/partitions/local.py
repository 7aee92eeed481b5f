"""``ProcessPool``: workers as processes of this machine, whose messages are files in shared memory."""

from __future__ import annotations

import mmap
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlineauto.cluster.partitions.messages import pack, unpack
from onlineauto.cluster.partitions.pool import CrewPool, InlinePool, Server
from onlineauto.errors import OptionError
from onlineauto.work.process import Process, has_ended, process_namespace, wait_for_processes

if TYPE_CHECKING:
    from onlineauto.cluster.partitions.pool import Pool
    from onlineauto.work.process import Parent

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a new directory is made in it
_LEAST_FREE = 1 << 30
"""Free bytes of shared memory without which messages are files in the directory for temporary files."""
_WORKER = f"{__name__}:serve"


class ProcessPool(CrewPool[Process, str]):
    """Worker processes on this machine."""

    def __init__(self, n: int, command: str) -> None:
        if os.name == "nt":
            raise OptionError("--workers 2 and more need Linux or macOS")
        super().__init__(n, wait_for_processes)
        self._folder, self._command = "", command

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [process.pid for process in (*self._crew.idle, *self._crew.busy)]

    def _start(self) -> Process:
        if not self._folder:  # a coordinator that is killed before it has workers leaves no folder
            self._folder = new_folder()
        return Process(_WORKER, self._folder, self._command, output="stderr")

    def _send(self, name: str, tree: Any) -> str:
        write_message(Path(self._folder, name), tree)
        return name

    def _received(self, message: Any) -> Any:
        return read_message(Path(self._folder, message)) if isinstance(message, str) else message

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = ""


def local_pool(n: int, command: str) -> Pool:
    """Return `n` workers on this machine for a model with the options `command`; one needs no process."""
    return InlinePool() if n == 1 else ProcessPool(n, command)


def serve(parent: Parent, folder: str, command: str) -> None:
    """Learn the chunks that the coordinator names; remove all messages if it is killed."""
    parent.on_death = lambda: shutil.rmtree(folder, ignore_errors=True)
    server = Server(command)
    for _, base, chunk in parent:
        end = chunk.replace("chunk", "end")
        try:
            changes = None if base is None else read_message(Path(folder, base))
            answer = server.answer(changes, read_message(Path(folder, chunk)))
            if not isinstance(answer, dict):
                write_message(Path(folder, end), answer)
                answer = end
        except OSError as error:  # such as a full disk
            answer = {"failed": str(error)}
        parent.send(answer)


def new_folder() -> str:
    """Return a new folder for messages; folders of this user's processes that were killed are removed.

    It is in shared memory, unless little of that is free: containers often have 64 MB.
    """
    prefix = f"onlineauto-{process_namespace()}-"
    parents = [Path(tempfile.gettempdir())]
    if os.access(_SHARED_MEMORY, os.W_OK):
        parents.append(_SHARED_MEMORY)
    for parent in parents:
        for path in parent.glob(f"{prefix}*-*"):
            with suppress(OSError, ValueError):
                pid = int(path.name.removeprefix(prefix).split("-")[0])
                if path.lstat().st_uid == os.getuid() and has_ended(pid):
                    shutil.rmtree(path, ignore_errors=True)
    is_shared = len(parents) > 1 and shutil.disk_usage(_SHARED_MEMORY).free >= _LEAST_FREE
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parents[is_shared])


def write_message(path: Path, tree: Any) -> None:
    """Write a message as a new file, so that a reader of an older one is not disturbed."""
    path.unlink(missing_ok=True)
    with path.open("xb", buffering=0) as file:
        for part in pack(tree):
            left = memoryview(part)
            while left:
                left = left[file.write(left) :]


def read_message(path: Path) -> Any:
    """Return the tree of a message, whose arrays are private views of the file."""
    with path.open("rb") as file:
        return unpack(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
