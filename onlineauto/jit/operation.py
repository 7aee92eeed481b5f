"""Operations: instructions for kernels that Python has no word for; the compiler knows what they are."""

from __future__ import annotations

from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class Operation:
    """A name for an intrinsic of `onlineauto.jit.compiler`, which is imported when a kernel is compiled.

    Parameters
    ----------
    file : str
        Name of the module that has it.
    name : str
        Name that it has there.
    arguments : object
        If there are any: what the function of that name is called with, to make the intrinsic.
    """

    def __init__(self, file: str, name: str, *arguments: Any) -> None:
        self._file, self.name, self.arguments = file, name, arguments

    @cached_property
    def _numba_type_(self) -> Any:
        """The type that Numba takes this object for, where a kernel calls it."""
        found = getattr(import_module(f"onlineauto.jit.compiler.{self._file}"), self.name)
        if self.arguments:
            found = found(*self.arguments)
        private = import_module("onlineauto.jit.compiler.numba_private")
        return private.type_of_operation(found)


short_loop: Any = Operation("intrinsics", "short_loop")
"""Mark the body of a loop that takes few turns; it emits no instruction.

LLVM unrolls every loop of unknown length as if it were long: it handles several turns at once and first
computes how many are left over. The loops over an event's namespaces and features take one or two turns. The
preparation took longer than these turns, and used up their registers.
"""

call_at: Any = Operation("intrinsics", "call_at")
"""Call the kernel at an address, inside a kernel: ``call_at(address, (argument, …))``; it returns nothing.

So what calls it is compiled without it: a loop that can explore in ten ways would be compiled with them all,
and anew for another. Nothing checks that the arguments are of the kinds that the kernel's address was asked
for. A record that a kernel has by its address is passed on as one that is sealed.
"""


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
    return Operation("intrinsics", "local_array", shape, np.dtype(dtype))
