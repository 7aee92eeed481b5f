"""The interface to machine code: kernels and their operations, the compiler, the cache and the library."""

from typing import Any, TypeAlias

from onlineauto.jit.ahead import compiling_processes, plan
from onlineauto.jit.cache import cache_directory
from onlineauto.jit.code import Bound, PureBound, entry_kernel, inline_kernel, kernel, prepare
from onlineauto.jit.compiling import is_compiling, watch_compiling
from onlineauto.jit.operation import PURE, call_at, local_array, short_loop
from onlineauto.jit.packing import Sealed, SealedRecords

__all__ = [
    "F32",
    "Bound",
    "Flags",
    "Four",
    "Sealed",
    "SealedRecords",
    "cache_directory",
    "call_at",
    "compiling_processes",
    "entry_kernel",
    "inline_kernel",
    "is_compiling",
    "kernel",
    "local_array",
    "plan",
    "prepare",
    "short_loop",
    "watch_compiling",
]

if PURE:
    Bound = PureBound  # type: ignore[misc,assignment]

F32: TypeAlias = Any
"""A float32 scalar inside a kernel. Annotated as float, it would be Python's float64 to a type checker."""

Flags: TypeAlias = Any
"""Four truth values in one register, see `onlineauto.jit.four`."""

Four: TypeAlias = Any
"""Four float32 numbers in one register, see `onlineauto.jit.four`."""
