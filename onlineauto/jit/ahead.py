"""Compile the programs that a workspace will need in other processes, while this one compiles the first.

Numba compiles one kernel at a time in a process. So `plan` stores the owner of several programs. When any
program must be compiled, the owner's `prepare` lists them, and one process for each other core compiles those
that are missing into the cache, the largest first. This process does the same as without the others: it loads
a program that is in the cache, waits for a program that is being compiled, and compiles the rest. So a killed
process costs only time.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import weakref
from collections import deque
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Protocol

from numpy.lib.format import descr_to_dtype, dtype_to_descr

from onlineauto.jit import bitcode, library
from onlineauto.jit.cache import can_keep, kernel_lock, load_object
from onlineauto.jit.compiling import report, watch_compiling
from onlineauto.jit.fingerprint import kernels_of, symbol_of
from onlineauto.jit.packing import ArrayKind, Number, Packed, RecordKind, TupleKind
from onlineauto.work.crew import WorkerLost
from onlineauto.work.process import Process, running_processes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FunctionType

    from onlineauto.jit.packing import Kind
    from onlineauto.work.process import Parent

    Program = tuple[FunctionType, Packed]
    Listed = tuple[str, str, list[Any]]

_LOG = logging.getLogger("onlineauto")
MOST = 4
"""Maximum number of processes: more would wait for the largest program, a third to a half of the work."""
LEAST = 24
"""Number of kernels to compile from which another process is worth its start, one CPU second."""
_ARRAY, _SEALED = "[]", "&"
_PACKAGE = __name__.partition(".")[0]
_WORKER = f"{_PACKAGE}.jit.ahead:compile_listed"


class Prepares(Protocol):
    """An object that calls programs."""

    def prepare(self) -> None:
        """Ask for the addresses of the programs; while they are listed, all addresses are 0."""


class _OfThread(threading.local):
    """The programs that this thread lists, if it does."""

    programs: list[Program] | None = None


_of_thread = _OfThread()
_plans: deque[weakref.ref[Prepares]] = deque(maxlen=1)


def plan(owner: Prepares) -> None:
    """Compile the programs of `owner`, weakly referenced, on all cores as soon as any must be compiled."""
    _plans.append(weakref.ref(owner))


def listed(function: FunctionType, packed: Packed) -> bool:
    """Return whether this thread only lists its programs; if it does, add one."""
    if _of_thread.programs is None:
        return False
    _of_thread.programs.append((function, packed))
    return True


def begin() -> None:
    """Start the processes of the plan, because a program must be compiled; do so once per plan."""
    owner = None
    with suppress(IndexError):  # another thread may take the plan
        owner = _plans.pop()()
    if owner is None or processes() < 2 or not can_keep():
        return
    programs: list[Program] = []
    _of_thread.programs = programs
    try:
        owner.prepare()
    finally:
        _of_thread.programs = None
    jobs = {symbol_of(*program): program for program in programs if _is_ours(*program)}
    missing = [symbol for symbol in jobs if not _exists(symbol)]
    sizes = {symbol: kernels_of(jobs[symbol][0]) for symbol in missing}
    missing.sort(key=sizes.__getitem__, reverse=True)
    n = min(processes(), len(missing)) - 1
    if n > 0 and sum(sizes.values()) >= LEAST:
        listing = [
            (symbol, _name(function), [plain_kind(kind) for kind in packed.kinds])
            for symbol, (function, packed) in ((symbol, jobs[symbol]) for symbol in missing)
        ]
        threading.Thread(target=_run, args=(n, listing), daemon=True).start()


def compiling_processes() -> int:
    """Return the number of processes that compile for this one, this one included."""
    return 1 + len(running_processes(_WORKER))


def processes() -> int:
    """Return the number of processes that compile: ``ONLINEAUTO_COMPILE_PROCESSES``, or that of cores.

    It is 1 if Python cannot be started again, because it is part of another program, and without file locks.
    Cores are those that this process may use, by its affinity and by the limit of its control group.
    """
    alone = not Path(sys.executable or "").name.lower().startswith("python") or hasattr(sys, "frozen")
    if alone or sys.platform == "win32":
        return 1
    if asked := os.environ.get("ONLINEAUTO_COMPILE_PROCESSES"):
        if asked.isdecimal():
            return int(asked)
        _LOG.warning("ONLINEAUTO_COMPILE_PROCESSES is %r, not a number: one process compiles", asked)
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(OSError, ValueError):  # ValueError: there is no limit
        quota, period = map(int, Path("/sys/fs/cgroup/cpu.max").read_text().split())
        cores = min(cores, quota // period)
    return min(max(cores, 1), MOST)


def plain_kind(kind: Kind) -> Any:
    """Return a kind as a value for JSON, for `kind_of`."""
    if isinstance(kind, Number):
        return kind.code
    if isinstance(kind, ArrayKind):
        return [_ARRAY, dtype_to_descr(kind.dtype), kind.ndim, kind.contiguous, kind.writeable]
    name = None if isinstance(kind, TupleKind) else _SEALED * kind.sealed + _name(kind.record)
    return [name, *map(plain_kind, kind.items)]


def kind_of(plain: Any) -> Kind:
    """Return the kind of a `plain_kind`."""
    if isinstance(plain, str):
        return Number(plain)
    name, *items = plain
    if name == _ARRAY:
        return ArrayKind(descr_to_dtype(items[0]), *items[1:])
    kinds = tuple(map(kind_of, items))
    if name is None:
        return TupleKind(kinds)
    return RecordKind(resolve_name(name.removeprefix(_SEALED)), kinds, name.startswith(_SEALED))


def _run(n: int, listing: list[Listed]) -> None:
    """Run the processes to their end, unless those of another process compile into the same cache."""
    with kernel_lock("ahead", wait=False) as free:
        if not free:
            return
        threads = [threading.Thread(target=_attend, args=(listing,), daemon=True) for _ in range(n)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def _attend(listing: list[Listed]) -> None:
    """Run one process, and report its progress."""
    with suppress(OSError):  # it cannot be started
        process = Process(_WORKER, listing, is_quiet=True)
        try:
            while True:
                report(*process.receive())
        except WorkerLost as end:
            _LOG.debug("a compiling process is %s", end)
        finally:
            process.kill()


def _exists(symbol: str) -> bool:
    """Return whether a program need not be compiled."""
    return bool(library.find(symbol) or bitcode.find(symbol) or load_object(symbol))


def _name(defined: FunctionType | type) -> str:
    return f"{defined.__module__}:{defined.__qualname__}"


def _is_ours(function: FunctionType, packed: Packed) -> bool:
    """Return whether a program is the package's own: importing modules of users could have effects."""
    modules = {function.__module__, *_modules(TupleKind(packed.kinds))}
    if any(not module.startswith(f"{_PACKAGE}.") for module in modules) or "<" in function.__qualname__:
        return False
    found: Any = resolve_name(_name(function))
    return getattr(found, "py_func", None) is function


def _modules(kind: Kind) -> Iterator[str]:
    if isinstance(kind, RecordKind):
        yield kind.record.__module__
    if isinstance(kind, RecordKind | TupleKind):
        for item in kind.items:
            yield from _modules(item)


def compile_listed(parent: Parent, programs: list[Any]) -> None:
    """Compile each program that no other process compiles, and send the parent the progress."""
    from onlineauto.jit.code import compile_program

    with watch_compiling(lambda *progress: parent.send(progress)):
        for symbol, name, kinds in programs:
            function, packed = resolve_name(name).py_func, Packed(tuple(map(kind_of, kinds)))
            with kernel_lock(f"{symbol}-ahead", wait=False) as mine:  # so that no other waits
                with kernel_lock(symbol, wait=False) as free:
                    pass
                if mine and free and symbol_of(function, packed) == symbol:  # the sources may have changed
                    compile_program(function, packed, symbol)
