"""``short_loop``: keep a loop as it is written.

LLVM unrolls every loop whose length it does not know, as if it were long: it makes room for several turns at
once and computes beforehand how many are left over. The loops over an example's namespaces and features take
one or two turns; the preparation took longer than the turns, and the registers that these needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import types
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
"""Stand in the body of a loop that takes few turns; no instruction is made of it.

It is assembly of no lines that must run as often as it is written (``convergent``), which rules out copies.
"""
