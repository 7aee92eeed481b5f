"""Compile: kernels to object code, with Numba and LLVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import binding
from numba import types

from onlineauto.jit.compiler.enumerations import without_enumerations
from onlineauto.jit.compiler.intrinsics import enter, result_of
from onlineauto.jit.compiler.numba_private import PRIVATE_SETTINGS, Inner, optimized_module, processor

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
    """Return the object code of a kernel for packed arguments, and the kind of its result.

    The code exports one function, `symbol`. It is relocatable, so it can be loaded alone or linked into a
    library.
    """
    kernel = Inner(without_enumerations(function), _SETTINGS)
    run, result = enter(kernel, packed)
    module, name = optimized_module(run, _SETTINGS, (types.int64,))
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = "internal"
    code = module.get_function(name)
    code.linkage, code.name = "external", symbol
    return _machine().emit_object(module), result_of(result[0])


def _machine() -> Any:
    """Return LLVM's code generator for the processor that Numba compiles for."""
    name, features = processor()
    target = binding.Target.from_triple(binding.get_process_triple())
    return target.create_target_machine(cpu=name, features=features, opt=3, reloc="pic", codemodel="default")
