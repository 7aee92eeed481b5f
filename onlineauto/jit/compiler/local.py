"""The intrinsic of `onlineauto.jit.local_array`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from onlineauto.jit.compiler.numba_private import stack_array

if TYPE_CHECKING:
    from collections.abc import Callable


def local_array(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an intrinsic that makes a contiguous array on the stack."""
    wanted = np.empty(shape, dtype)
    kind: Any = types.Array(from_dtype(wanted.dtype), wanted.ndim, "C")

    def make(typingctx: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return stack_array(context, builder, kind, wanted)

        return kind(), codegen

    return intrinsic(make)
