"""Compile kernels to optimised LLVM bitcode, with Numba and LLVM."""

from __future__ import annotations

from collections import namedtuple
from enum import EnumType, IntEnum
from functools import cache, update_wrapper
from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from numba import types

from onlineauto.jit.compiler.intrinsics import enter, result_of
from onlineauto.jit.compiler.numba_private import PRIVATE_SETTINGS, Inner, optimized_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.jit.packing import Kind, Packed

_SETTINGS: dict[str, Any] = {"nopython": True, "nogil": True, "error_model": "numpy", **PRIVATE_SETTINGS}
_inner: list[Inner] = []


def without_enumerations(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a copy of a function in which the `IntEnum` classes that it names are tuples of ints."""
    assert isinstance(function, FunctionType)
    names = function.__code__.co_names
    plain = {name: _plain(value) for name, value in function.__globals__.items() if name in names}
    cells = tuple(CellType(_plain(cell.cell_contents)) for cell in function.__closure__ or ())
    made = FunctionType(
        function.__code__, function.__globals__ | plain, function.__name__, function.__defaults__, cells
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return update_wrapper(made, function)


def _plain(value: Any) -> Any:
    """Return a value without enumerations: a member as its int, an `IntEnum` class as a tuple of ints."""
    if isinstance(value, IntEnum):
        return int(value)
    return _tuple_of(value) if isinstance(value, EnumType) and issubclass(value, IntEnum) else value


@cache
def _tuple_of(members: type[IntEnum]) -> Any:
    """Return a named tuple of the ints of all members; one object for each enumeration."""
    named = dict(members.__members__)
    kind: Any = namedtuple(members.__name__, named)  # type: ignore[misc]  # noqa: PYI024
    return kind(*map(int, named.values()))


def type_for_callers(function: Callable[..., Any], *, inline: bool) -> Any:
    """Return Numba's type of a kernel that other kernels call."""
    _inner.append(Inner(without_enumerations(function), _SETTINGS | {"forceinline": inline}))
    return types.Dispatcher(_inner[-1])


def compile_kernel(function: Callable[..., Any], packed: Packed, symbol: str) -> tuple[bytes, Kind]:
    """Return the optimised LLVM bitcode of a kernel for packed arguments, and the kind of its result.

    The module exports one function, `symbol`.
    """
    kernel = Inner(without_enumerations(function), _SETTINGS)
    run, result = enter(kernel, packed)
    module, name = optimized_module(run, _SETTINGS, (types.int64,))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = "internal"
    code = module.get_function(name)
    code.linkage, code.name = "external", symbol
    return module.as_bitcode(), result_of(result[0])
