"""Compile kernels to optimised LLVM bitcode, with Numba and LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import types

from onlineauto.jit.compiler.enumerations import without_enumerations
from onlineauto.jit.compiler.intrinsics import enter, result_of
from onlineauto.jit.compiler.numba_private import PRIVATE_SETTINGS, Inner, optimized_module

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.jit.packing import Kind, Packed

_SETTINGS: dict[str, Any] = {"nopython": True, "nogil": True, "error_model": "numpy", **PRIVATE_SETTINGS}
_inner: list[Inner] = []


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
