"""``local_array``: a small array on the stack, as scratch memory of one kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.jit.operation import Operation

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


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
    return Operation("local", "local_array", shape, np.dtype(dtype))
