"""Load or compile the machine code of a kernel for certain kinds of arguments, and call it from Python."""

from __future__ import annotations

import ctypes
import json
from functools import cached_property, partial, update_wrapper
from struct import Struct, calcsize
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

from onlineauto.errors import CompilerError, install_hint
from onlineauto.jit import ahead, bitcode, library
from onlineauto.jit.cache import load_object
from onlineauto.jit.compiling import compile_cached
from onlineauto.jit.fingerprint import kernels_of, symbol_of
from onlineauto.jit.operation import PURE, address_of, run
from onlineauto.jit.packing import Kind, Number, Packed, RecordKind, TupleKind, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FunctionType

# Without types of the arguments: converting three addresses takes as long as the call itself.
_CALL, _BRIEF_CALL = ctypes.CFUNCTYPE(ctypes.c_int32), ctypes.PYFUNCTYPE(ctypes.c_int32)
FRAME = 16
"""Number of bytes before the words: space for Numba's own result, and for the address of an error."""

_COMPILER = ("numba", "llvmlite")


class Code:
    """The machine code of a kernel for certain kinds of arguments."""

    __slots__ = ("_call", "_frame", "_name", "_result", "_results", "_struct", "address")

    def __init__(self, name: str, address: int, packed: Packed, result: Kind) -> None:
        self.address = address
        self._name, self._struct, self._result = name, packed.struct, result
        self._results = Struct("=" + result.format)
        self._frame = ctypes.c_char * (FRAME + packed.struct.size + self._results.size)
        self._call = _CALL(address)

    @property
    def returns(self) -> bool:
        """Return whether the kernel returns a result."""
        return self._results.size > 0

    def call(self, words: list[Any]) -> Any:
        """Call the kernel with the words of its arguments, and return its result."""
        frame = self.frame(words)
        if self.caller(frame)():
            self.fail()
        return self.result(frame)

    def frame(self, words: list[Any]) -> ctypes.Array[ctypes.c_char]:
        """Return the memory for a call; the words of the arguments begin at byte `FRAME`."""
        frame = self._frame()
        self._struct.pack_into(frame, FRAME, *words)
        return frame

    def caller(self, frame: ctypes.Array[ctypes.c_char], *, brief: bool = False) -> Callable[[], int]:
        """Return a function that calls the kernel, and returns 0 on success; a `brief` call keeps the GIL."""
        call = _BRIEF_CALL(self.address) if brief else self._call
        return partial(call, ctypes.byref(frame), ctypes.byref(frame, 8), ctypes.byref(frame, FRAME))

    def fail(self) -> NoReturn:
        """Raise the error of a failed call."""
        raise IndexError(f"an index is out of bounds in the kernel {self._name}")

    def result(self, frame: ctypes.Array[ctypes.c_char]) -> Any:
        """Return the result of a call, read from its frame."""
        if not self._results.size:
            return None
        return _value(self._result, iter(self._results.unpack_from(frame, FRAME + self._struct.size)))


class _NoCode(Code):
    """The code of a program that is only listed, see `onlineauto.jit.ahead`: it has no address."""

    def __init__(self) -> None:
        self.address = 0

    def call(self, words: list[Any]) -> NoReturn:  # noqa: ARG002
        """Raise an error: a plan may not call programs."""
        raise RuntimeError("a plan of programs calls one")


NO_CODE = _NoCode()


def _value(kind: Kind, words: Iterator[Any]) -> Any:
    """Return the value of a kind from the next of `words`."""
    if isinstance(kind, Number):
        return None if kind.code == "n" else next(words)
    if isinstance(kind, RecordKind):
        return kind.record(*(_value(item, words) for item in kind.items))
    assert isinstance(kind, TupleKind)
    return tuple(_value(item, words) for item in kind.items)


def code_for(function: FunctionType, packed: Packed) -> Code:
    """Return the machine code of a kernel for arguments of certain kinds."""
    symbol = symbol_of(function, packed)
    try:
        address, text = library.find(symbol) or _load_or_compile(function, packed, symbol)
    except ModuleNotFoundError as error:
        if error.name not in _COMPILER:
            raise
        raise CompilerError(
            f"the kernel {function.__module__}.{function.__qualname__} must be compiled, but Numba is not "
            f"installed: {install_hint('compiler')}"
        ) from error
    return Code(function.__qualname__, address, packed, ahead.kind_of(json.loads(text)))


def _load_or_compile(function: FunctionType, packed: Packed, symbol: str) -> tuple[int, str]:
    """Return the address of a kernel and the kind of its result, from the disk, from bitcode or compiled."""
    from onlineauto.jit.loading import load

    code = load_object(symbol)
    if code is None:
        if bitcode.find(symbol) is None:
            ahead.begin()
        code = compile_program(function, packed, symbol)
    return load(code[0], symbol), code[1]


def compile_program(function: FunctionType, packed: Packed, symbol: str) -> tuple[bytes, str]:
    """Return the object code of a kernel and the kind of its result, and store them in the cache."""
    make = partial(_generate, function, packed, symbol)
    return compile_cached(symbol, make, name=function.__qualname__, total=kernels_of(function))


def _generate(function: FunctionType, packed: Packed, symbol: str) -> tuple[bytes, str]:
    """Return the object code of a kernel and the kind of its result, from its bitcode."""
    from onlineauto.jit.loading import object_code

    code, result = bitcode_for(function, packed, symbol)
    try:
        return object_code(code), result
    except RuntimeError as error:
        if bitcode.find(symbol) is None:
            raise
        bitcode.reject(error)
        return _generate(function, packed, symbol)


def bitcode_for(function: FunctionType, packed: Packed, symbol: str) -> tuple[bytes, str]:
    """Return the optimised bitcode of a kernel, the package's or compiled, and the kind of its result."""
    found = bitcode.find(symbol)
    if found is not None:
        return found
    from onlineauto.jit.compiler.compile import compile_kernel

    code, result = compile_kernel(function, packed, symbol)
    return code, json.dumps(ahead.plain_kind(result))


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
        if ahead.listed(function, packed):
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
    """A kernel that runs as plain Python, see `onlineauto.jit.operation`."""

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
