"""``call_at``: call a kernel by its address, so that what calls it is compiled without it.

A loop that can explore in ten ways would be compiled with all ten, and anew for an eleventh. So each is a
kernel of its own, compiled and loaded when it is chosen, and the loop is given its address. The call costs 6
to 9 ns. An address is good for one process: it must be kept in nothing that is copied or saved.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import typeof, types
from numba.extending import intrinsic

from onlineauto.jit.numba_private import code_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["address_of", "call_at"]


def address_of(kernel: Callable[..., None], *arguments: Any) -> int:
    """Return the address of an entry kernel that is compiled for arguments of the types of these.

    It is valid for as long as the kernel lives.
    """
    return code_of(kernel, tuple(map(typeof, arguments)))


def _call_at(
    typingctx: Any,  # noqa: ARG001 - Numba's signature
    address: Any,
    first: Any,
    second: Any,
    third: Any,
    fourth: Any,
) -> tuple[Any, Callable[..., Any]]:
    kinds = (first, second, third, fourth)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        convention = context.call_conv
        kind = convention.get_function_type(types.none, kinds)
        code = builder.inttoptr(arguments[0], kind.as_pointer())
        status, _ = convention.call_function(builder, code, types.none, kinds, arguments[1:])
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(address, *kinds), codegen


call_at: Any = intrinsic(_call_at)
"""Call the kernel at an address with four arguments, inside a kernel; it returns nothing.

The arguments must be of the types that `address_of` was given: nothing checks them.
"""
