"""Decorators of kernels: functions of numbers, arrays and tuples of them, compiled with Numba."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from onlineauto.jit.entry import Entry
from onlineauto.jit.inner import Inner

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["entry_kernel", "inline_kernel", "kernel"]

F = TypeVar("F", bound="Callable[..., Any]")

# Who calls from Python holds the arrays meanwhile, and no kernel makes or returns one: nobody has to count
# the references to them, for which Numba would write more code than for all the rest.
_SETTINGS: dict[str, Any] = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


def entry_kernel(function: F) -> F:
    """Compile `function` with Numba, to be called from Python: cached on disk.

    As `kernel` otherwise. Only what the package calls from Python is one: its arguments have to be unpacked,
    which takes longer to compile than many a kernel.
    """
    return cast("F", Entry(function, _SETTINGS))


def kernel(function: F) -> F:
    """Compile `function` with Numba, to be called by kernels: no GIL, no fast-math, C division.

    Without fast-math every float32 operation rounds in source order, which bit-exact parity rests on. Its
    machine code is made with that of its callers; called from Python, as tests do, it is compiled for that.

    Parameters
    ----------
    function : callable
        Takes scalars, arrays and tuples of them only, and returns scalars and tuples of those; variants are
        chosen by an int code, since a function passed as an argument would defeat the cache. References to
        arrays are not counted: what it needs for itself is a `local_array`, and what it returns is in an
        array that it was given.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": False}))


def inline_kernel(function: F) -> F:
    """Like `kernel`, but compiled into its callers.

    A call copies every field of every array that it passes on, which for a small function of a few tuples
    costs more than its work: inlining made learning three times as fast. Not for large functions with
    several callers, whose code would be there several times.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": True}))
