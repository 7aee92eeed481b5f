"""``local_array``: a small array on the stack, as scratch memory of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba import from_dtype, types
from numba.extending import intrinsic

from onlineauto.jit.numba_private import stack_array

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import DTypeLike

__all__ = ["local_array"]


def local_array(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Return a function for kernels that returns a contiguous array of this shape, with undefined content.

    Kernels do not count references, so they cannot allocate memory (see `kernel`). This array lives as long
    as the call of the kernel that made it: it may be passed on, but not returned.

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
    wanted = np.empty(shape, dtype)
    kind: Any = types.Array(from_dtype(wanted.dtype), wanted.ndim, "C")

    def make(typingctx: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return stack_array(context, builder, kind, wanted)

        return kind(), codegen

    return intrinsic(make)
