"""``local_array``: a small array on the stack, as scratch memory of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

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
    generator: Any = cgutils  # Numba is not typed

    def make(typingctx: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            def integers(*numbers: int) -> list[Any]:
                return [context.get_constant(types.intp, number) for number in numbers]

            array = context.make_array(kind)(context, builder)
            array.nitems, array.itemsize = integers(wanted.size, wanted.itemsize)
            item = context.get_data_type(kind.dtype)
            array.data = generator.alloca_once(builder, item, size=integers(wanted.size)[0])
            array.shape = generator.pack_array(builder, integers(*wanted.shape))
            array.strides = generator.pack_array(builder, integers(*wanted.strides))
            return array._getvalue()  # noqa: SLF001 - the way Numba's own implementations make one

        return kind(), codegen

    return intrinsic(make)
