"""Operations: names for instructions that Python cannot express; the compiler defines them."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Operation:
    """A name for an intrinsic of `onlineauto.jit.compiler`, which is imported when a kernel is compiled."""

    def __init__(self, file: str, name: str, *arguments: Any) -> None:
        self._file, self.name, self.arguments = file, name, arguments

    def __call__(self, *arguments: Any) -> Any:
        """Run the operation in Python, where kernels are plain Python (see `onlineauto.jit.pure`)."""
        return self._function(*arguments)

    @cached_property
    def _function(self) -> Any:
        from onlineauto.jit.pure import operation

        return operation(self._file, self.name, self.arguments)

    @cached_property
    def _numba_type_(self) -> Any:
        """Numba's type of this object, for kernels that call it."""
        intrinsic = getattr(import_module(f"onlineauto.jit.compiler.{self._file}"), self.name)
        if self.arguments:
            intrinsic = intrinsic(*self.arguments)
        private = import_module("onlineauto.jit.compiler.numba_private")
        return private.type_of_operation(intrinsic)


short_loop: Any = Operation("intrinsics", "short_loop")
"""Mark the body of a loop that has few iterations; the mark emits no instruction.

LLVM unrolls every loop of unknown length as if it were long: it handles several iterations at once and first
computes the remainder. The loops over an event's namespaces and features have one or two iterations. For them
the preparation takes longer than the work, and uses up registers.
"""

call_at: Any = Operation("intrinsics", "call_at")
"""Call the kernel at an address from another kernel: ``call_at(address, (argument, …))``; it returns nothing.

So the caller is compiled without the kernel. Otherwise the loop would be compiled with all ten explorers, and
again for every new one. The kinds of the arguments must be those of the `Kernel.address` call; this is not
checked. A record that a kernel has by its address is passed as a sealed record.
"""


def local_array(shape: int | tuple[int, ...], dtype: DTypeLike) -> Any:
    """Return a function for kernels that returns a contiguous array of this shape, with undefined content.

    Kernels do not count references, so they cannot allocate memory (see `kernel`). The array exists until the
    kernel that created it returns: it may be passed to other kernels, but not returned.

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
    return Operation("intrinsics", "local_array", shape, np.dtype(dtype))
