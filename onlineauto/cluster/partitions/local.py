"""Workers as processes of this machine: messages are files in shared memory, pipes carry their names.

A worker process runs `process`. It exits when its pipe is closed, so it does not outlive its coordinator.
A process that dies is replaced, and its chunk is learnt again from the same base: an end is merged only when
it is complete, and only once.
"""

from __future__ import annotations

import mmap
import os
import selectors
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from onlineauto.cluster.partitions.messages import chunk_to_tree, end_of_tree, pack, unpack
from onlineauto.cluster.partitions.server import MOST_DEATHS, Bases, OutsidePool
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError
from onlineauto.cluster.partitions.worker import Worker
from onlineauto.errors import InputError, OptionError, WorkersError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from onlineauto.cluster.partitions.coordinator import Coordinator
    from onlineauto.cluster.partitions.messages import Chunk
    from onlineauto.cluster.partitions.worker import End

_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - a new directory is made in it
_LEAST_FREE = 1 << 30
"""Free bytes of shared memory without which messages are files in the directory for temporary files."""
_WORKER = "onlineauto.cluster.partitions.process"
"""The module of a worker process, which nothing imports, because Python runs it."""


class Pool(Protocol):
    """Learns the chunks of a round."""

    @property
    def size(self) -> int:
        """Number of workers outside this process that run."""

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        """Return the ends of chunks that were learnt from the coordinator's next base.

        Raises
        ------
        UnexpectedEventsError
            The coordinator must read the events itself.
        """

    def resize(self, n: int) -> None:
        """Have `n` workers from the next round on."""

    def close(self) -> None:
        """End the workers."""


class InlinePool:
    """A single worker in this process."""

    size = 0

    def __init__(self) -> None:
        self._worker: Worker | None = None

    def learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        """Return the ends of chunks that were learnt from the coordinator's next base."""
        base = coordinator.next_base()
        worker, self._worker = self._worker, None  # an error leaves no worker
        if worker is None or worker.version != base.since:
            worker, base = Worker(coordinator.workspace.configuration), coordinator.full_base()
        worker.adopt(base)
        try:
            ends = [worker.learn(chunk.block, chunk.seed) for chunk in chunks]
        except UnexpectedEventsError:
            self._worker = worker
            raise
        self._worker = worker
        return ends

    def resize(self, n: int) -> None:
        """Do nothing: `PartitionedRun.resize` takes another pool."""

    def close(self) -> None:
        """Do nothing."""


class _Process:
    """A worker process: the base that it has, and the chunk that it learns."""

    def __init__(self, folder: str, command: str) -> None:
        self.version, self.chunk = 0, -1
        self._process = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", _WORKER, folder, command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the coordinator, which ends its workers
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self.output = self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, message: Any) -> bool:
        """Send a message; return False if the process has died."""
        try:
            self._input.write(msgspec.json.encode(message) + b"\n")
            self._input.flush()
        except (OSError, ValueError):  # it has died, or was ended
            return False
        return True

    def receive(self) -> dict[str, Any] | None:
        """Return the next message; None if the process has died."""
        line = self.output.readline()
        return msgspec.json.decode(line) if line.endswith(b"\n") else None

    def end(self) -> str:
        """End the process, unless it has ended, and return how it has ended."""
        self.send("leave")
        with suppress(OSError):
            self._input.close()
        try:
            code = self._process.wait(5.0 if self.chunk < 0 else 0.1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self.output.close()
        return f"killed by signal {-code}" if code < 0 else f"ended with code {code}"


class ProcessPool(OutsidePool):
    """Worker processes on this machine."""

    def __init__(self, n: int, command: str) -> None:
        if os.name == "nt":
            raise OptionError("--workers 2 and more need Linux or macOS: Windows cannot wait for pipes")
        super().__init__(n)
        self._folder, self._command = "", command
        self._processes: list[_Process] = []

    @property
    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [each.pid for each in self._processes]

    @property
    def size(self) -> int:
        """Number of processes that run."""
        return len(self._processes)

    def _learn(self, coordinator: Coordinator, chunks: Sequence[Chunk]) -> list[End]:
        if not self._folder:  # a coordinator that is killed before it has workers leaves no folder
            self._folder = new_folder()
        while len(self._processes) > self._n:
            self._processes.pop().end()
        while len(self._processes) < self._n:
            self._processes.append(_Process(self._folder, self._command))
        bases = Bases(coordinator, self._write)
        waiting = deque(range(len(chunks)))
        paths: dict[int, str] = {}
        refused = ""
        for number, chunk in enumerate(chunks):
            self._write(f"chunk{number}", chunk_to_tree(chunk))
        with selectors.DefaultSelector() as selector:
            idle = list(self._processes)
            while waiting or selector.get_map():
                while idle and waiting:
                    process = idle.pop()
                    base, process.chunk = bases.of_version(process.version), waiting.popleft()
                    message = {"base": base, "chunk": f"chunk{process.chunk}", "end": f"end{process.chunk}"}
                    if process.send(message):
                        process.version = coordinator.version
                        selector.register(process.output, selectors.EVENT_READ, process)
                    else:
                        idle.append(self._replace(process, waiting))
                coordinator.look_ahead()
                for key, _ in selector.select():
                    process = key.data
                    selector.unregister(process.output)
                    answer = process.receive()
                    if answer is None:
                        idle.append(self._replace(process, waiting))
                        continue
                    if "failed" in answer:
                        raise WorkersError(f"a worker cannot read or write its messages: {answer['failed']}")
                    if "error" in answer:
                        raise InputError(answer["error"])
                    if "refuses" in answer:
                        refused = answer["refuses"]
                        waiting.clear()
                    else:
                        paths[process.chunk] = answer["end"]
                    process.chunk, self._deaths = -1, 0
                    idle.append(process)
        if refused:
            raise UnexpectedEventsError(refused)
        return [end_of_tree(self._read(paths[number])) for number in range(len(chunks))]

    def _replace(self, process: _Process, waiting: deque[int]) -> _Process:
        """Return a new process for one that has died, and let its chunk wait again."""
        waiting.appendleft(process.chunk)
        how = process.end()
        self._deaths += 1
        if self._deaths > MOST_DEATHS:
            raise WorkersError(
                f"workers have died {self._deaths} times in a row; the last one was {how}. Messages of the "
                "processes are on standard error"
            )
        new = _Process(self._folder, self._command)
        self._processes[self._processes.index(process)] = new
        return new

    def _write(self, name: str, tree: Any) -> str:
        """Write a message to a file of the folder, and return its name."""
        write_message(Path(self._folder, name), tree)
        return name

    def _read(self, name: str) -> Any:
        return read_message(Path(self._folder, name))

    def close(self) -> None:
        """End the processes, and remove their messages."""
        self._end()

    def _end(self) -> None:
        try:
            while self._processes:
                self._processes.pop().end()
        finally:
            if self._folder:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = ""
            self._deaths = 0

    def __enter__(self) -> Self:
        """Return this pool."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        self.close()


def local_pool(n: int, command: str) -> Pool:
    """Return `n` workers on this machine for a model with the options `command`; one needs no process."""
    return InlinePool() if n == 1 else ProcessPool(n, command)


def new_folder() -> str:
    """Return a new folder for messages; folders of this user's processes that were killed are removed.

    It is in shared memory, unless little of that is free: containers often have 64 MB.
    """
    prefix = f"onlineauto-{_pid_space()}-"
    parents = [Path(tempfile.gettempdir())]
    if os.access(_SHARED_MEMORY, os.W_OK):
        parents.append(_SHARED_MEMORY)
    for parent in parents:
        for path in parent.glob(f"{prefix}*-*"):
            with suppress(OSError, ValueError):
                pid = int(path.name.removeprefix(prefix).split("-")[0])
                if path.lstat().st_uid == os.getuid() and not _is_alive(pid):
                    shutil.rmtree(path, ignore_errors=True)
    is_shared = len(parents) > 1 and shutil.disk_usage(_SHARED_MEMORY).free >= _LEAST_FREE
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parents[is_shared])


def _pid_space() -> int:
    """Return what tells containers apart that share memory, but not numbers of processes; 0 if unknown."""
    with suppress(OSError):
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116 - not a file
    return 0


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


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
