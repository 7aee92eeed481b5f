"""Compile kernels in a background thread, so that a waiting caller can be interrupted and sees the progress.

LLVM does not check for signals while it compiles, which takes seconds. So it runs in a separate thread. If
the caller stops waiting, the thread continues, and its result is available to the next caller. The thread is
a daemon: it ends with the process.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Protocol

from onlineauto.jit.bitcode import bitcode
from onlineauto.jit.cache import cache_directory, can_keep, keep, kernel_lock, load_object

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOG = logging.getLogger("onlineauto")
FIRST_RUN, COMPILE_TIME = 5, 70
"""CPU seconds of the first run of the README's command: with the package's bitcode, and without.

``python -m bench.cold_start`` measures them. `tests/test_documents.py` finds the pages that name them.
"""
_STACK = 64 << 20
"""Bytes of the thread's stack: compilers recurse."""
unforked = threading.Lock()
"""Acquired to load a kernel, and to begin or end compiling one; a fork waits for it."""
_pending: dict[str, Future[tuple[bytes, str]]] = {}


class Listener(Protocol):
    """A callback for the progress of compiling."""

    def __call__(self, program: str, done: int, total: int, /) -> object:
        """Receive the number of started kernels of `program`, out of `total`; equal at the end."""


_listeners: list[Listener] = []


class _Program:
    """A program that is being compiled: a kernel that Python calls, and the kernels that it calls."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.kernels: set[str] = set()


class _Current(threading.local):
    """The program that this thread compiles."""

    program: _Program | None = None


_current = _Current()


@contextmanager
def watch_compiling(listener: Listener) -> Iterator[None]:
    """Call `listener` whenever a kernel begins to be compiled, and when a program is complete."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def note_begin(kernel: str) -> None:
    """Report to the listeners that the compilation of a kernel begins."""
    program = _current.program
    if program is not None:
        program.kernels.add(kernel)
        if not _listeners:
            _announce()
        report(program.name, min(len(program.kernels), program.total - 1), program.total)


def report(program: str, done: int, total: int) -> None:
    """Call the listeners with the progress of a program."""
    for listener in _listeners[:]:
        listener(program, done, total)


@cache
def _announce() -> None:
    """Log once per process that kernels are being compiled, so that a slow first call is explained."""
    why = bitcode().reason or "their sources are not those of the package's bitcode"
    if not can_keep():
        _LOG.warning("compiling kernels (%s): usually about %d CPU seconds", why, COMPILE_TIME)
        return
    _LOG.warning(
        "compiling kernels, once (%s): usually about %d CPU seconds; they are kept in %s; "
        "`onlineauto warmup` compiles them all ahead of time",
        why,
        COMPILE_TIME,
        cache_directory().parent,
    )


def is_compiling() -> bool:
    """Return whether a kernel is being compiled."""
    return bool(_pending)


def compile_cached(
    symbol: str, make: Callable[[], tuple[bytes, str]], *, name: str, total: int
) -> tuple[bytes, str]:
    """Return the result of `make` for a kernel, computed once for all threads and processes, and cached."""
    program = _Program(name, total)

    def work(future: Future[tuple[bytes, str]]) -> None:
        try:
            with kernel_lock(symbol):
                result = load_object(symbol)
                if result is None:
                    can_keep()
                    _current.program = program
                    result = make()
                    report(name, total, total)
                    keep(symbol, *result)
            future.set_result(result)
        except BaseException as error:
            future.set_exception(error)
        finally:
            with unforked:
                del _pending[symbol]

    with unforked:
        future = _pending.get(symbol)
        if future is None:
            future = _pending[symbol] = Future()
            before = threading.stack_size(_STACK)
            try:
                threading.Thread(target=work, args=(future,), daemon=True).start()
            except BaseException:  # without a started thread the other callers would wait forever
                del _pending[symbol]
                raise
            finally:
                threading.stack_size(before)
    return future.result()


def _finish_before_fork() -> None:
    """Wait until no kernel is being compiled: a child inherits the locks of threads, but not the threads."""
    unforked.acquire()
    while undone := [future for future in _pending.values() if not future.done()]:
        unforked.release()
        wait(undone)
        unforked.acquire()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_finish_before_fork, after_in_parent=unforked.release, after_in_child=unforked.release
    )
