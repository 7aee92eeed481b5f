"""``short_loop``: keep LLVM from unrolling a loop.

LLVM unrolls every loop of unknown length as if it were long: it handles several turns at once and first
computes how many are left over. The loops over an event's namespaces and features take one or two turns. The
preparation took longer than these turns, and used up their registers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["short_loop"]


def _short_loop(typingctx: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(nothing, [], attrs=("convergent", "nounwind"))
        return context.get_dummy_value()

    return types.void(), codegen


short_loop: Any = intrinsic(_short_loop)
"""Mark the body of a loop that takes few turns; it emits no instruction.

It is inline assembly without a line that must run exactly as often as written (``convergent``). That forbids
LLVM to copy the body.
"""
