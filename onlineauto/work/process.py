"""``Process``: a worker process of this machine, and ``Parent``: the process that started this one.

A new Python runs a function of a module, which is named; nothing is forked or pickled. A pair of sockets
carries messages, which are lists of plain values in MessagePack. A thread of the worker reads them, so that
the worker exits as soon as the process that started it has ended, in whatever way.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from pkgutil import resolve_name
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.work.crew import WorkerLost
from onlineauto.work.imports import IMPORTED, import_parts

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator, Sequence

_PATIENCE = 5
"""Seconds that a process has to exit before it is killed."""
_PROGRAM = (
    "import json, sys; target, handle, modules, sys.path[:], sys.argv = json.loads(sys.argv[1]); "
    "from onlineauto.work.process import _serve; _serve(target, handle, modules)"
)
_running: set[Process] = set()
_of_parent: list[subprocess.Popen[bytes]] = []
"""The processes of the parent of a fork, which must not be waited for."""
_unforked = threading.Lock()
"""Acquired to start a process; a fork waits for it, because its child must not inherit an unknown socket."""


class Process:
    """A process that runs ``target(parent, *arguments)``, where `target` is ``MODULE:FUNCTION``.

    What it prints goes to the standard output and error of this process, or nowhere if it `is_quiet`. It
    does not receive the interrupt of a terminal (Ctrl-C): the process that started it decides when to end it.
    """

    is_up = True  # the socket buffers messages until the process reads them

    def __init__(self, target: str, *arguments: Any, is_quiet: bool = False) -> None:
        import subprocess
        from multiprocessing.connection import Pipe

        self.target = target
        with _unforked:
            self.connection, child_end = Pipe()
            handle = child_end.fileno()
            words = json.dumps([target, handle, [*IMPORTED], [*map(str, sys.path)], sys.argv])
            inherits: Any = {"pass_fds": [handle], "start_new_session": True}
            if sys.platform == "win32":
                os.set_handle_inheritable(handle, True)
                inherits = {"close_fds": False, "creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
            with child_end:
                self._process = subprocess.Popen(  # noqa: S603 - our own module
                    [sys.executable, "-P", "-c", _PROGRAM, words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL if is_quiet else None,
                    stderr=subprocess.DEVNULL if is_quiet else None,
                    **inherits,
                )
            _running.add(self)
        self.send(arguments)

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self._process.pid

    def send(self, *message: Any) -> None:
        """Send a message; if the process has died, `receive` reports that."""
        try:
            self.connection.send_bytes(msgspec.msgpack.encode(message))
        except OSError:
            return

    def receive(self) -> Any:
        """Return the next message; raise `WorkerLost` if the process has died."""
        try:
            return msgspec.msgpack.decode(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise WorkerLost(self._exit_reason()) from None

    def close(self) -> None:
        """Let the process return from its function, and kill it if it has not exited after five seconds."""
        self.send()
        self._exit_reason()

    def kill(self) -> None:
        """End the process at once."""
        self._process.kill()
        self._exit_reason()

    def _exit_reason(self) -> str:
        """Wait for the end of the process, and return how it has ended."""
        from subprocess import TimeoutExpired

        self.connection.close()
        try:
            code = self._process.wait(_PATIENCE)
        except TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        _running.discard(self)
        return (
            f"killed by {signal.Signals(-code).name}"
            if code < 0
            else f"ended with code {code} (see standard error)"
        )


def wait_for_processes(processes: Sequence[Process], seconds: float | None) -> list[Process]:
    """Return processes that have sent a message or died; none after the timeout."""
    from multiprocessing.connection import wait

    ready = wait([process.connection for process in processes], seconds)
    return [process for process in processes if process.connection in ready]


def running_processes(target: str) -> list[int]:
    """Return the numbers of the processes with a target that this one has started and that have not ended."""
    return [process.pid for process in [*_running] if process.target == target]


def has_ended(pid: int) -> bool:
    """Return whether a process of this machine has ended, even if its parent has not received that yet."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    except ProcessLookupError:
        return True
    except OSError:  # the process belongs to another user, or its state is unknown
        return False
    return state in ("Z", "X")  # a zombie can last long in a container


def process_namespace() -> str:
    """Return a hash of the running kernel and of the namespace of its process numbers; empty if unknown."""
    from hashlib import sha256  # loads OpenSSL, which takes 3 MB of memory

    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        identity = f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""
    return sha256(identity.encode()).hexdigest()[:12]


class Parent:
    """The process that started this one. Iteration yields its messages until this process is to end."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._messages: SimpleQueue[list[Any]] = SimpleQueue()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=connection.close)
        threading.Thread(target=self._read, name="onlineauto parent", daemon=True).start()

    def __iter__(self) -> Iterator[list[Any]]:
        while message := self._messages.get():
            yield message

    def receive(self) -> list[Any]:
        """Return the next message; an empty one asks this process to end."""
        return self._messages.get()

    def send(self, message: Any) -> None:
        """Send a message."""
        try:
            self._connection.send_bytes(msgspec.msgpack.encode(message))
        except OSError:  # the thread that reads may not know yet
            os._exit(1)

    def _read(self) -> None:
        message: list[Any] | None = None
        try:
            while message != []:
                message = msgspec.msgpack.decode(self._connection.recv_bytes())
                self._messages.put(message)
        except (EOFError, OSError):
            os._exit(1)


def _serve(target: str, handle: int, modules: Sequence[str]) -> None:
    """Run the function of a worker process, with the modules that ``--import`` named."""
    from multiprocessing import connection

    for module in modules:
        import_parts(module)

    kind: Any = getattr(connection, "PipeConnection" if sys.platform == "win32" else "Connection")
    parent = Parent(kind(handle))
    [arguments] = parent.receive()
    resolve_name(target)(parent, *arguments)


def _leave_to_parent() -> None:
    """Close the sockets in a child of a fork: the processes must end with the parent."""
    for process in _running:
        process.connection.close()
        _of_parent.append(process._process)  # noqa: SLF001 - of this file
    _running.clear()
    _unforked.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_unforked.acquire, after_in_parent=_unforked.release, after_in_child=_leave_to_parent
    )
