"""Decorators of kernels: functions of numbers, arrays and tuples of these, which become machine code.

Nothing is compiled when a kernel is made, and Numba is not imported. Machine code comes, in this order, from
the library of kernels that a wheel may carry, from the cache on the disk, from the compiler.
"""

from __future__ import annotations

from functools import cached_property, update_wrapper
from struct import Struct, calcsize
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from onlineauto.jit.code import FRAME, Code, code_for
from onlineauto.jit.packing import Packed, pack

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

_NUMBER = Struct("=q")
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
        return self.code(packed).call(words)

    def address(self, *arguments: Any) -> int:
        """Return where the machine code is for arguments of the kinds of these, compiled if need be.

        It is another in every process, so it must be kept in nothing that is copied or saved.
        """
        packed, _ = pack(arguments)
        return self.code(packed).address

    def code(self, packed: Packed) -> Code:
        """Return the machine code for arguments of certain kinds."""
        return self._codes.get(packed) or self._code(packed)

    def _code(self, packed: Packed) -> Code:
        code = self._codes[packed] = code_for(cast("FunctionType", self.py_func), packed)
        return code

    @cached_property
    def _numba_type_(self) -> Any:
        """The type that Numba takes this object for, where a kernel calls it."""
        from onlineauto.jit.compiler.compile import type_for_callers

        return type_for_callers(self.py_func, inline=self._inline)


class Bound:
    """A kernel with its arguments, which are packed once, to be called again and again.

    One thread at a time may call it. It holds addresses of this process, so it cannot be copied.

    Parameters
    ----------
    kernel : callable
        The kernel.
    *arguments
        Its arguments. The content of arrays may change.
    varying : int, optional
        Index of the argument, a whole number, that each call is given.
    brief : bool, default=False
        Do not let other threads run Python meanwhile. To take turns costs them more than a short call, and
        whoever holds a lock would pass it on at every call.

    Examples
    --------
    >>> import numpy as np
    >>> from onlineauto.features.hash_kernels import murmur3
    >>> data = np.frombuffer(b"tested", np.uint8).copy()
    >>> hash_of_first = Bound(murmur3, data, 0, 0, np.uint32(0), varying=2)
    >>> hash_of_first(6), hash_of_first(4)
    (2247989476, 3127628307)
    """

    __slots__ = ("_arguments", "_call", "_code", "_frame", "_offset", "_returns")

    def __init__(
        self, kernel: Callable[..., Any], *arguments: Any, varying: int = -1, brief: bool = False
    ) -> None:
        packed, words = pack(arguments)
        self._arguments = arguments  # their arrays must not go
        self._code = cast("Kernel", kernel).code(packed)
        self._frame = self._code.frame(words)
        self._call, self._returns = self._code.caller(self._frame, brief=brief), self._code.returns
        self._offset = FRAME + sum(calcsize("=" + each.format) for each in packed.kinds[: max(varying, 0)])

    def __call__(self, number: int | None = None) -> Any:
        """Call the kernel and return its result."""
        if number is not None:
            _NUMBER.pack_into(self._frame, self._offset, number)
        if self._call():
            self._code.fail()
        return self._code.result(self._frame) if self._returns else None


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
