"""The intrinsic of `onlineauto.jit.short_loop`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

if TYPE_CHECKING:
    from collections.abc import Callable


def _short_loop(typingctx: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(nothing, [], attrs=("convergent", "nounwind"))
        return context.get_dummy_value()

    return types.void(), codegen


short_loop: Any = intrinsic(_short_loop)
"""It is inline assembly without a line that must run exactly as often as written (``convergent``). That
forbids LLVM to copy the body.
"""
