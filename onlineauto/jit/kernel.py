"""Decorators that compile kernels with Numba: functions of numbers, arrays and tuples of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from onlineauto.jit.entry import Entry
from onlineauto.jit.inner import Inner
from onlineauto.jit.numba_private import PRIVATE_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["entry_kernel", "inline_kernel", "kernel"]

F = TypeVar("F", bound="Callable[..., Any]")

_SETTINGS: dict[str, Any] = {"nopython": True, "nogil": True, "error_model": "numpy", **PRIVATE_SETTINGS}


def entry_kernel(function: F) -> F:
    """Return `function`, compiled with Numba to be called from Python and cached on disk.

    It is like `kernel` otherwise. Only what the package calls from Python is an entry kernel: the code that
    unpacks the arguments takes longer to compile than many a kernel.
    """
    return cast("F", Entry(function, _SETTINGS))


def kernel(function: F) -> F:
    """Return `function`, compiled with Numba to be called by kernels: no GIL, no fast-math, C division.

    Without fast-math every float32 operation rounds in source order; bit-exact parity depends on that. The
    machine code is made together with that of the callers. If Python calls the kernel, as tests do, it is
    compiled once more for that.

    Parameters
    ----------
    function : callable
        Takes only scalars, arrays and tuples of these, and returns scalars and tuples of scalars. Variants
        are chosen by an int code, since a function passed as an argument would defeat the cache. References
        to arrays are not counted: for scratch memory use `local_array`, and write results into an array that
        the caller passes.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": False}))


def inline_kernel(function: F) -> F:
    """Return `function`, compiled as `kernel` does, but inlined into its callers.

    A call copies every field of every array that it passes. For a small function of a few tuples that costs
    more than its work: inlining made learning three times as fast. Do not use it for large functions with
    several callers, since each caller gets a copy of the code.
    """
    return cast("F", Inner(function, _SETTINGS | {"forceinline": True}))
