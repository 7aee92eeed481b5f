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
from onlineauto.cluster.partitions.pool import CrewPool, RemoteServer, RemoteWorker
from onlineauto.errors import OptionError, WorkersError
from onlineauto.work.process import Process, has_ended, process_namespace, wait_for_processes

if TYPE_CHECKING:
    from onlineauto.work.process import Parent

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a new directory is made in it
_LEAST_FREE = 1 << 30
"""Free bytes of shared memory without which messages are files in the directory for temporary files."""
_WORKER = f"{__name__}:serve"
_SERVER = f"{__name__}:serve_merges"


class ProcessPool(CrewPool[Process, str]):
    """Worker processes on this machine."""

    def __init__(self, n: int, command: str, servers: int = 0) -> None:
        if os.name == "nt":
            raise OptionError("--backend processes needs Linux or macOS")
        super().__init__(n, wait_for_processes, servers)
        self._folder, self._command = "", command

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [process.pid for process in (*self._crew.idle, *self._crew.busy)]

    def _start(self) -> Process:
        return Process(_WORKER, self._messages(), self._command, output="stderr")

    def _start_server(self, number: int) -> Process:
        return Process(_SERVER, self._messages(), self._command, number, output="stderr")

    def _messages(self) -> str:
        """Return the folder for messages."""
        if not self._folder:  # a coordinator that is killed before it has workers leaves no folder
            self._folder = new_folder()
        return self._folder

    def send(self, name: str, tree: Any) -> str:
        """Write a message, and return its name."""
        write_message(Path(self._messages(), name), tree)
        return name

    def read(self, sent: str) -> Any:
        """Return the tree of a message."""
        return read_message(Path(self._folder, sent))

    def received(self, worker: Process, message: Any) -> tuple[Any, list[str]]:
        """Return the plain answer of a worker or server, and the names of the messages it has written."""
        del worker
        answer, outputs = message
        if isinstance(answer, dict) and "failed" in answer:
            raise WorkersError(f"a worker cannot read or write its messages: {answer['failed']}")
        return answer, outputs

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = ""


def serve(parent: Parent, folder: str, command: str) -> None:
    """Learn the chunks that the coordinator names."""
    _answer(parent, folder, RemoteWorker(command))


def serve_merges(parent: Parent, folder: str, command: str, number: int) -> None:
    """Merge the parts of ends that the coordinator names."""
    _answer(parent, folder, RemoteServer(command, number))


def _answer(parent: Parent, folder: str, owner: RemoteWorker | RemoteServer) -> None:
    """Call the methods that messages name, and write their results.

    An argument that is a text is the name of a message. If the coordinator is killed, its folder is removed.
    """
    parent.on_death = lambda: shutil.rmtree(folder, ignore_errors=True)
    for _, method, output, *arguments in parent:
        try:
            trees = [
                read_message(Path(folder, argument)) if isinstance(argument, str) else argument
                for argument in arguments
            ]
            answer, results = getattr(owner, method)(*trees)
            outputs = [f"{output}.{number}" for number in range(len(results))]
            for name, result in zip(outputs, results, strict=True):
                write_message(Path(folder, name), result)
        except OSError as error:  # such as a full disk
            answer, outputs = {"failed": str(error)}, []
        parent.send((answer, outputs))


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
