"""Code: the machine code of a kernel for certain arguments, found or made, and how Python calls it."""

from __future__ import annotations

import ctypes
import json
from functools import partial
from importlib import import_module
from struct import Struct
from typing import TYPE_CHECKING, Any, NoReturn

from onlineauto.errors import CompilerError, install_hint
from onlineauto.jit import library
from onlineauto.jit.cache import kept
from onlineauto.jit.compiling import compiled
from onlineauto.jit.fingerprint import fingerprint_of, kernels_of
from onlineauto.jit.packing import ArrayKind, Kind, Number, RecordKind, TupleKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FunctionType

    from onlineauto.jit.packing import Packed

_KIND = ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
_CALL, _BRIEF_CALL = ctypes.CFUNCTYPE(*_KIND), ctypes.PYFUNCTYPE(*_KIND)
FRAME = 16
"""Bytes in front of the words: the code may write a result of its own, and where an error is described."""

_COMPILER = ("numba", "llvmlite")


class Code:
    """The machine code of a kernel for certain arguments.

    Attributes
    ----------
    address : int
        Where it is.
    """

    __slots__ = ("_call", "_frame", "_name", "_result", "_results", "_struct", "address")

    def __init__(self, name: str, address: int, packed: Packed, result: Kind) -> None:
        self.address = address
        self._name, self._struct, self._result = name, packed.struct, result
        self._results = Struct("=" + result.format)
        self._frame = ctypes.c_char * (FRAME + packed.struct.size + self._results.size)
        self._call = _CALL(address)

    @property
    def returns(self) -> bool:
        """Return whether it returns anything."""
        return self._results.size > 0

    def call(self, words: list[Any]) -> Any:
        """Call it with the words of its arguments, and return its result.

        Raises
        ------
        IndexError
            It is compiled with checks of every index, and one was wrong.
        """
        frame = self.frame(words)
        if self.caller(frame)():
            self.fail()
        return self.result(frame)

    def frame(self, words: list[Any]) -> ctypes.Array[ctypes.c_char]:
        """Return memory for a call, with the words of its arguments, the first of them at `FRAME`."""
        frame = self._frame()
        self._struct.pack_into(frame, FRAME, *words)
        return frame

    def caller(self, frame: ctypes.Array[ctypes.c_char], *, brief: bool = False) -> Callable[[], int]:
        """Return what calls it with the arguments in a frame; the call returns 0 if all went well.

        A `brief` call does not let other threads run Python meanwhile.
        """
        begin = ctypes.addressof(frame)
        call = _BRIEF_CALL(self.address) if brief else self._call
        return partial(call, begin, begin + 8, begin + FRAME)

    def fail(self) -> NoReturn:
        """Raise the error of a call that did not go well."""
        raise IndexError(f"the kernel {self._name} was asked for what an array does not have")

    def result(self, frame: ctypes.Array[ctypes.c_char]) -> Any:
        """Return the result of a call, which is in its frame."""
        if not self._results.size:
            return None
        return _value(self._result, iter(self._results.unpack_from(frame, FRAME + self._struct.size)))


def _value(kind: Kind, words: Iterator[Any]) -> Any:
    """Return the value of a kind whose words are next."""
    if isinstance(kind, Number):
        return None if kind.code == "n" else next(words)
    if isinstance(kind, RecordKind):
        return kind.record(*(_value(each, words) for each in kind.items))
    assert isinstance(kind, TupleKind)
    return tuple(_value(each, words) for each in kind.items)


def code_for(function: FunctionType, packed: Packed) -> Code:
    """Return the machine code of a kernel for arguments of certain kinds.

    Parameters
    ----------
    function : callable
        The kernel's function.
    packed : Packed
        The kinds of the arguments.

    Raises
    ------
    CompilerError
        It must be compiled or loaded, and the compiler is not installed.
    """
    symbol = _symbol(function, packed)
    try:
        address, text = library.find(symbol) or _made(function, packed, symbol)
    except ModuleNotFoundError as error:
        if error.name not in _COMPILER:
            raise
        raise CompilerError(
            f"the kernel {function.__module__}.{function.__qualname__} must be compiled, and there is no "
            f"Numba: {install_hint('compiler')}"
        ) from error
    return Code(function.__qualname__, address, packed, _kind_from(json.loads(text)))


def _made(function: FunctionType, packed: Packed, symbol: str) -> tuple[int, str]:
    """Return the address of a kernel and the kind of its result, from the disk or from the compiler."""
    from onlineauto.jit.loading import load

    made = kept(symbol)
    if made is None:
        make = partial(_compile, function, packed, symbol)
        made = compiled(symbol, make, name=function.__qualname__, total=kernels_of(function))
    return load(made[0], symbol), made[1]


def _compile(function: FunctionType, packed: Packed, symbol: str) -> tuple[bytes, str]:
    from onlineauto.jit.compiler.compile import compile_kernel

    code, result = compile_kernel(function, packed, symbol)
    return code, json.dumps(_plain(result))


def _symbol(function: FunctionType, packed: Packed) -> str:
    """Return the name of a kernel's machine code, which tells apart everything that it depends on."""
    plain = "".join(each if each.isalnum() else "_" for each in f"{function.__module__}.{function.__name__}")
    return f"{plain}_{packed.name}_{fingerprint_of(function)[:16]}"


def _plain(kind: Kind) -> Any:
    """Return the kind of a result as JSON has it."""
    if isinstance(kind, Number):
        return kind.code
    assert not isinstance(kind, ArrayKind)
    record = kind.record if isinstance(kind, RecordKind) else None
    name = record and f"{record.__module__}:{record.__qualname__}"
    return [name, *map(_plain, kind.items)]


def _kind_from(plain: Any) -> Kind:
    if isinstance(plain, str):
        return Number(plain)
    name, *items = plain
    kinds = tuple(map(_kind_from, items))
    if name is None:
        return TupleKind(kinds)
    module, _, record = name.partition(":")
    return RecordKind(getattr(import_module(module), record), kinds)
