"""Intrinsics for kernels: calls by address, arrays on the stack, and loops of few iterations.

Every kernel that Python calls has the same form in machine code: a function of one address, at which the
words of its arguments are stored (`onlineauto.jit.packing`). The words of its results are written after them.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba import from_dtype, types
from numba.extending import intrinsic

from onlineauto.jit.compiler.numba_private import stack_array, stack_words
from onlineauto.jit.compiler.reference import load_argument, places_of, store, type_of, words_of
from onlineauto.jit.packing import Kind, Number, RecordKind, TupleKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.jit.packing import Packed


_WORD = ir.IntType(64)
_CODES = {
    types.boolean: "?", types.int8: "b", types.uint8: "B", types.int16: "h", types.uint16: "H",
    types.int32: "i", types.uint32: "I", types.int64: "q", types.uint64: "Q", types.float32: "f",
    types.float64: "d", types.none: "n",
}  # fmt: skip


def enter(dispatcher: Any, packed: Packed) -> tuple[Callable[[int], None], list[Any]]:
    """Return a function for Numba that takes the address of words and calls a kernel with them.

    The second result is a list that receives the type of what the kernel returns, once it is compiled.
    """
    found: list[Any] = []
    wanted = tuple(type_of(kind, argument=True) for kind in packed.kinds)
    end = sum(map(words_of, packed.kinds))

    def call(typingctx: Any, address: Any) -> tuple[Any, Callable[..., Any]]:
        kernel = types.Dispatcher(dispatcher)
        signature = typingctx.resolve_function_type(kernel, wanted, {})
        found[:] = [signature.return_type]

        def codegen(context: Any, builder: Any, outer: Any, arguments: Any) -> Any:
            words = builder.inttoptr(arguments[0], _WORD.as_pointer())
            given = [load_argument(context, builder, kind, words, at) for kind, at in places_of(packed.kinds)]
            result = context.get_function(kernel, signature)(builder, given)
            store(context, builder, signature.return_type, result, words, end)
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    entered: Any = intrinsic(call)

    def run(address: int) -> None:
        entered(address)

    return run, found


def result_of(kind: Any) -> Kind:
    """Return the kind of a result of Numba's type `kind`."""
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        return RecordKind(kind.instance_class, tuple(map(result_of, kind)))
    if isinstance(kind, types.BaseTuple):
        items: Any = kind
        return TupleKind(tuple(map(result_of, items)))
    plain: Any = types.unliteral  # Numba is not typed
    kind = plain(kind)
    if kind not in _CODES:
        raise TypeError(f"a kernel that Python calls returns numbers and tuples of these, not {kind}")
    return Number(_CODES[kind])


def intrinsic_with_result(result: Any, *names: str) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that turns a function that emits instructions into an intrinsic."""
    parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("typingctx", *names)]

    def made(codegen: Callable[..., Any]) -> Any:
        def typed(typingctx: Any, *kinds: Any) -> tuple[Any, Callable[..., Any]]:
            return result(*kinds), codegen

        typed.__name__ = codegen.__name__
        typed.__signature__ = Signature(parameters)  # type: ignore[attr-defined] # read by Numba
        return intrinsic(typed)

    return made


@intrinsic_with_result(types.none, "address", "given")
def call_at(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Call the kernel at an address from another kernel; it returns nothing."""
    words = stack_words(builder, _words(signature.args[1]))
    store(context, builder, signature.args[1], arguments[1], words, 0)
    convention = context.call_conv
    code_type = convention.get_function_type(types.none, (types.int64,))
    code = builder.inttoptr(arguments[0], code_type.as_pointer())
    place = builder.ptrtoint(words, _WORD)
    status, _ = convention.call_function(builder, code, types.none, (types.int64,), [place])
    with builder.if_then(status.is_error, likely=False):
        convention.return_status_propagate(builder, status)
    return context.get_dummy_value()


def _words(kind: Any) -> int:
    """Return the number of words that a value of Numba's type `kind` takes as an argument."""
    if isinstance(kind, types.BaseTuple):
        items: Any = kind
        return sum(map(_words, items))
    return 3 + 2 * kind.ndim if isinstance(kind, types.Array) else 1


@intrinsic_with_result(types.void)
def short_loop(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Emit empty inline assembly marked ``convergent``, so that LLVM does not copy the body of the loop."""
    nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
    builder.call(nothing, [], attrs=("convergent", "nounwind"))
    return context.get_dummy_value()


def local_array(shape: int | tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an intrinsic that makes a contiguous array on the stack."""
    wanted = np.empty(shape, dtype)
    kind: Any = types.Array(from_dtype(wanted.dtype), wanted.ndim, "C")

    @intrinsic_with_result(kind)
    def make(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return stack_array(context, builder, kind, wanted)

    return make
