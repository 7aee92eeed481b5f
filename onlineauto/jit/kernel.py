"""Decorators of kernels: functions of numbers, arrays and tuples of these, which become machine code.

Nothing is compiled when a kernel is made, and Numba is not imported. Machine code comes, in this order, from
the library of kernels that a wheel may carry, from the cache on the disk, from the compiler.
"""

from __future__ import annotations

from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from onlineauto.jit.code import Code, code_for
from onlineauto.jit.packing import Packed, pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

__all__ = ["Kernel", "entry_kernel", "inline_kernel", "kernel", "prepare"]

F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")


class Kernel:
    """A function that is compiled: into its callers, if these are kernels; by itself, if Python calls it.

    Attributes
    ----------
    py_func : callable
        The function.
    """

    def __init__(self, function: Callable[..., Any], *, inline: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._inline = inline
        self._codes: dict[Packed, Code] = {}

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel from Python."""
        packed, words = pack(arguments)
        code = self._codes.get(packed) or self._code(packed)
        return code.call(words)

    def address(self, *arguments: Any) -> int:
        """Return where the machine code is for arguments of the kinds of these, compiled if need be.

        It is another in every process, so it must be kept in nothing that is copied or saved.
        """
        packed, _ = pack(arguments)
        return (self._codes.get(packed) or self._code(packed)).address

    def _code(self, packed: Packed) -> Code:
        code = self._codes[packed] = code_for(cast("FunctionType", self.py_func), packed)
        return code

    @cached_property
    def _numba_type_(self) -> Any:
        """The type that Numba takes this object for, where a kernel calls it."""
        from onlineauto.jit.compiler.compile import type_for_callers

        return type_for_callers(self.py_func, inline=self._inline)


def entry_kernel(function: F) -> F:
    """Return `function` as a kernel that Python calls once a block, or whose address others are given.

    It is like `kernel` otherwise, or like `inline_kernel` above which it is written. Only what the package
    calls from Python is an entry kernel, since each is a program of its own on the disk, with all that it
    calls.
    """
    return function if isinstance(function, Kernel) else cast("F", Kernel(function))


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
    return cast("F", Kernel(function))


def inline_kernel(function: F) -> F:
    """Return `function`, compiled as `kernel` does, but inlined into its callers.

    For a small function of a few arguments a call costs more than its work. Do not use it for large functions
    with several callers, since each caller gets a copy of the code.
    """
    return cast("F", Kernel(function, inline=True))


def prepare(kernel: Callable[P, object], /, *arguments: P.args, **_: P.kwargs) -> None:
    """Have the machine code of a kernel ready for arguments of the kinds of these, so that no call waits."""
    cast("Kernel", kernel).address(*arguments)
