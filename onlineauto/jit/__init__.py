"""The one door to Numba."""

from typing import Any, TypeAlias

from onlineauto.jit.borrow import borrow
from onlineauto.jit.kernel import inline_kernel, is_compiled, kernel

__all__ = ["F32", "Four", "borrow", "inline_kernel", "is_compiled", "kernel"]

F32: TypeAlias = Any
"""A float32 scalar of a kernel. Type checkers would mix it up with Python's float, which Numba must not."""

Four: TypeAlias = Any
"""Four float32 numbers in one register, see `onlineauto.jit.four`."""
