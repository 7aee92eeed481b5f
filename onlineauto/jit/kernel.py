"""Decorators of kernels: functions of numbers, arrays and tuples of these that are compiled to machine code.

Decorating a function compiles nothing and does not import Numba. Machine code is looked up on the first call:
in the library of kernels that a wheel may contain, then in the cache on the disk. Otherwise it is compiled.
"""

from __future__ import annotations

from functools import cached_property, update_wrapper
from struct import calcsize
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

from onlineauto.jit.ahead import listed
from onlineauto.jit.code import FRAME, NO_CODE, Code, code_for
from onlineauto.jit.packing import Packed, pack
from onlineauto.jit.pure import PURE, address_of, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FunctionType

F = TypeVar("F", bound="Callable[..., Any]")
P = ParamSpec("P")


class Kernel:
    """A compiled function: part of its callers' code in other kernels, separate code if Python calls it."""

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
        """Return the address, in this process, of the code for such arguments; compile it if necessary."""
        packed, _ = pack(arguments)
        return self.code(packed).address

    def code(self, packed: Packed) -> Code:
        """Return the machine code for arguments of certain kinds."""
        return self._codes.get(packed) or self._code(packed)

    def _code(self, packed: Packed) -> Code:
        function = cast("FunctionType", self.py_func)
        if listed(function, packed):
            return NO_CODE
        code = self._codes[packed] = code_for(function, packed)
        return code

    @cached_property
    def _numba_type_(self) -> Any:
        """Numba's type of this object, for kernels that call it."""
        from onlineauto.jit.compiler.compile import type_for_callers

        return type_for_callers(self.py_func, inline=self._inline)


class Bound:
    """A kernel with its arguments, packed once for many calls of one thread at a time; it cannot be copied.

    >>> import numpy as np
    >>> from onlineauto.features.hash_kernels import murmur3
    >>> data = np.frombuffer(b"tested", np.uint8).copy()
    >>> hash_of_first = Bound(murmur3, data, 0, 0, np.uint32(0), varying=2)
    >>> hash_of_first(6), hash_of_first(4)
    (2247989476, 3127628307)
    """

    __slots__ = ("_arguments", "_call", "_code", "_frame", "_number", "_returns")

    def __init__(
        self, kernel: Callable[..., Any], *arguments: Any, varying: int = -1, brief: bool = False
    ) -> None:
        packed, words = pack(arguments)
        self._arguments = arguments  # keeps their arrays alive
        self._code = cast("Kernel", kernel).code(packed)
        self._frame = self._code.frame(words)
        self._call, self._returns = self._code.caller(self._frame, brief=brief), self._code.returns
        if varying >= 0:
            offset = FRAME + sum(calcsize("=" + kind.format) for kind in packed.kinds[:varying])
            self._number = memoryview(self._frame).cast("B")[offset : offset + 8].cast("q")

    def __call__(self, number: int | None = None) -> Any:
        """Call the kernel and return its result."""
        if number is not None:
            self._number[0] = number
        if self._call():
            self._code.fail()
        return self._code.result(self._frame) if self._returns else None


class PureKernel(Kernel):
    """A kernel that runs as plain Python, see `onlineauto.jit.pure`."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel's function."""
        return run(self.py_func, arguments)

    def address(self, *arguments: Any) -> int:
        """Return the number by which `call_at` finds the kernel."""
        del arguments
        return address_of(self.py_func)


class PureBound:
    """`Bound` for a kernel that runs as plain Python."""

    def __init__(
        self, kernel: Callable[..., Any], *arguments: Any, varying: int = -1, brief: bool = False
    ) -> None:
        del brief
        self._function, self._arguments, self._varying = cast("Kernel", kernel).py_func, arguments, varying

    def __call__(self, number: int | None = None) -> Any:
        """Call the kernel and return its result."""
        arguments = list(self._arguments)
        if number is not None:
            arguments[self._varying] = number
        return run(self._function, arguments)


_KERNEL: type[Kernel] = PureKernel if PURE else Kernel


def entry_kernel(function: F) -> F:
    """Return `function` as a program of its own, which Python calls, or kernels by address: once per block.

    If `inline_kernel` is below, other kernels inline it.
    """
    return function if isinstance(function, Kernel) else cast("F", _KERNEL(function))


def kernel(function: F) -> F:
    """Return `function`, compiled with Numba to be called by kernels: no GIL, no fast-math, C division.

    Without fast-math every float32 operation rounds in source order; bit-exact parity depends on that.
    """
    return cast("F", _KERNEL(function))


def inline_kernel(function: F) -> F:
    """Return a small `function`, compiled like `kernel` but inlined into each of its callers."""
    return cast("F", _KERNEL(function, inline=True))


def prepare(kernel: Callable[P, object], /, *arguments: P.args, **_: P.kwargs) -> None:
    """Load or compile a kernel's machine code for arguments of these kinds, so that no later call waits."""
    cast("Kernel", kernel).address(*arguments)
