"""``borrow``: let a kernel use its arguments without counting references to them.

Numba counts references to every array that a function takes, in atomic operations; a small kernel that is
given a few tuples of arrays spends most of its time on that. The caller of a kernel holds its arguments
anyway, so the entry point borrows them once, and all kernels below pass on what needs no counting.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba.core import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["borrow", "uncounted"]


def uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Code that clears the owner of every array in a value; what goes back to Python is still what it was."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()  # noqa: SLF001 - the way Numba's own implementations read a struct
    if isinstance(kind, types.BaseTuple):
        parts: Any = kind
        for i, item in enumerate(parts.types):
            part = uncounted(context, builder, item, builder.extract_value(value, i))
            value = builder.insert_value(value, part, i)
    return value


def _borrow(typingctx: Any, value: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return uncounted(context, builder, signature.args[0], arguments[0])

    return value(value), codegen


borrow: Any = intrinsic(_borrow)
"""Return an array, or a tuple of arrays and tuples, whose references are not counted.

For the arguments of a kernel that is called from Python, and only for as long as that call lasts.
"""
