"""Operations: names for instructions that Python cannot express. The compiler defines them.

The environment variable ``NUMBA_DISABLE_JIT=1`` lets kernels run as plain Python in a process, for debuggers
and to compare with machine code. A kernel is then its Python function; an address is a number by which
`call_at` finds a kernel; and an operation is a function of this file. Arrays of records become record arrays,
whose items have attributes. Integers and float32 follow NumPy's rules, which differ from Numba's in some
places: `docs/develop/numba.md` lists what cannot run in this mode.
"""

from __future__ import annotations

import os
import threading
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.jit.packing import Sealed, SealedRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import DTypeLike


class Operation:
    """A name for an intrinsic of `onlineauto.jit.compiler`, which is imported when a kernel is compiled."""

    def __init__(self, file: str, name: str, *arguments: Any) -> None:
        self._file, self.name, self.arguments = file, name, arguments

    def __call__(self, *arguments: Any) -> Any:
        """Run the operation in Python, where kernels are plain Python."""
        return self._function(*arguments)

    @cached_property
    def _function(self) -> Callable[..., Any]:
        if self.name == "local_array":
            shape, dtype = self.arguments
            return lambda: _kernel_view(np.zeros(shape, dtype))
        return _OPERATIONS[self.name if self._file == "intrinsics" else f"{self._file}.{self.name}"]

    @cached_property
    def _numba_type_(self) -> Any:
        """Numba's type of this object, for kernels that call it."""
        intrinsic = getattr(import_module(f"onlineauto.jit.compiler.{self._file}"), self.name)
        if self.arguments:
            intrinsic = intrinsic(*self.arguments)
        private = import_module("onlineauto.jit.compiler.numba_private")
        return private.type_of_operation(intrinsic)


short_loop: Any = Operation("intrinsics", "short_loop")
"""Mark the body of a loop that has few iterations; the mark emits no instruction.

LLVM unrolls every loop of unknown length as if it were long: it handles several iterations at once and first
computes the remainder. The loops over an event's namespaces and features have one or two iterations. For them
the preparation takes longer than the work, and uses up registers.
"""

call_at: Any = Operation("intrinsics", "call_at")
"""Call the kernel at an address from another kernel: ``call_at(address, (argument, …))``; it returns nothing.

So the caller is compiled without the kernel. Otherwise the loop would be compiled with all ten explorers, and
again for every new one. The kinds of the arguments must be those of the `Kernel.address` call; this is not
checked. A record that a kernel has by its address is passed as a sealed record.
"""


def local_array(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Return a function for kernels that returns a contiguous array of this shape, with undefined content.

    Kernels do not count references, so they cannot allocate memory (see `kernel`). The array exists until the
    kernel that created it returns: it may be passed to other kernels, but not returned.

    >>> from onlineauto.jit import kernel
    >>> pair = local_array(2, np.int64)
    >>> @kernel
    ... def swapped(a, b):
    ...     both = pair()
    ...     both[0], both[1] = b, a
    ...     return both[0], both[1]
    >>> swapped(1, 2)
    (2, 1)
    """
    return Operation("intrinsics", "local_array", shape, np.dtype(dtype))


PURE: Final = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""True if kernels run as plain Python in this process."""

_functions: list[Callable[..., Any]] = []
_sealed: dict[int, Any] = {}
_of_thread = threading.local()


def address_of(function: Callable[..., Any]) -> int:
    """Return the number by which `call_at` finds a function."""
    if function not in _functions:
        _functions.append(function)
    return 1 + _functions.index(function)


def run(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """Call a kernel's function; arguments from outside of kernels become what machine code would get."""
    if getattr(_of_thread, "runs", False):
        return function(*arguments)
    _of_thread.runs = True
    try:
        with np.errstate(all="ignore"):
            return function(*map(_kernel_view, arguments))
    finally:
        _of_thread.runs = False


def _kernel_view(value: Any) -> Any:
    """Return an argument as a kernel sees it."""
    if isinstance(value, Sealed):
        return _kernel_view(value.value)
    if isinstance(value, SealedRecords):
        _sealed.update(zip(value.addresses.tolist(), value.records, strict=True))
        return value.addresses
    if isinstance(value, np.ndarray):
        return value.view(np.recarray) if value.dtype.names else value
    if isinstance(value, tuple):
        items = map(_kernel_view, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def _call_at(address: int, arguments: tuple[Any, ...]) -> None:
    known = [_kernel_view(_sealed[int(each)]) if _is_record(each) else each for each in arguments]
    _functions[int(address) - 1](*known)


def _is_record(value: Any) -> bool:
    """Return whether an argument is the address of a sealed record; addresses are int64, in an array."""
    return isinstance(value, np.int64) and int(value) in _sealed


def _word(data: Any, i: int, size: int) -> int:
    return int.from_bytes(data[int(i) : int(i) + size].tobytes(), "little")


def _mark(flags: Any) -> np.uint64:
    return np.uint64(int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little"))


def _store8(data: Any, i: int, word: np.uint64) -> None:
    data[int(i) : int(i) + 8] = np.frombuffer(int(word).to_bytes(8, "little"), np.uint8)


def _row(table: Any, row: int, column: int) -> Any:
    return table.reshape(-1)[int(row) * table.shape[1] + int(column) :][:4]


def _load(table: Any, row: int, column: int) -> Any:
    # Machine code always reads four numbers, even past the end of the table.
    numbers = _row(table, row, column)
    return np.pad(numbers, (0, 4 - len(numbers)))


def _store(table: Any, row: int, column: int, value: Any) -> None:
    numbers = _row(table, row, column)
    numbers[:] = value[: len(numbers)]


_OPERATIONS: Final[dict[str, Callable[..., Any]]] = {
    "short_loop": lambda: None,
    "call_at": _call_at,
    "words.load1": lambda data, i: data[i],
    "words.load4": lambda data, i: np.uint32(_word(data, i, 4)),
    "words.load8": lambda data, i: np.uint64(_word(data, i, 8)),
    "words.store8": _store8,
    "words.equal": lambda data, i, byte: _mark(data[i : i + 64] == byte),
    "words.below": lambda data, i, byte: _mark(data[i : i + 64] < byte),
    "words.first_one": lambda word: 64 if word == 0 else (int(word) & -int(word)).bit_length() - 1,
    "words.ones": lambda word: int(word).bit_count(),
    "four.splat": lambda x: np.full(4, x, np.float32),
    "four.four": lambda *parts: np.array(parts, np.float32),
    "four.flags": lambda *parts: np.array(parts, np.bool_),
    "four.load_flags": _load,
    "four.flag": lambda where, i: where[i],
    "four.some": np.any,
    "four.element": lambda value, i: value[i],
    "four.load": _load,
    "four.load_from": lambda row, at: row[int(at) :][:4].copy(),
    "four.store": _store,
    "four.prefetch": lambda *_: None,
    "four.root": np.sqrt,
    "four.at_most": np.less_equal,
    "four.below": np.less,
    "four.both": np.logical_and,
    "four.pick": np.where,
}
