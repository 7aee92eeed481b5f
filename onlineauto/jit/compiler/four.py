"""The intrinsics of `onlineauto.jit.four`."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic, models, overload, register_model

if TYPE_CHECKING:
    from collections.abc import Callable

_N = 4
_WRITE, _SOON, _DATA = 1, 3, 1
"""Hints of ``llvm.prefetch``: for a write, into the nearest cache, of data."""
_VECTOR = ir.VectorType(ir.FloatType(), _N)
_BITS = ir.VectorType(ir.IntType(1), _N)


def _operation(function: Callable[..., Any]) -> Any:
    """Return `function` as an intrinsic that kernels can call; it writes LLVM instructions."""
    return intrinsic(function)


class FourType(types.Type):
    """Numba's type of a Four."""


class FlagsType(types.Type):
    """Numba's type of four truth values."""


FOUR, FLAGS = FourType("Four"), FlagsType("Flags")


@register_model(FourType)
class _FourModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)  # type: ignore[no-untyped-call]


@register_model(FlagsType)
class _FlagsModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _BITS)  # type: ignore[no-untyped-call]


def _index(i: int) -> Any:
    return ir.Constant(ir.IntType(32), i)


def _gather(builder: Any, kind: Any, parts: list[Any]) -> Any:
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_element(value, part, _index(i))
    return value


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any = _VECTOR) -> Any:
    """Return the address of four elements of ``table[row]``, checked if Numba checks indices.

    A row that is shorter is followed by others, or by memory of the same owner.
    """
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    height, width = (builder.extract_value(array.shape, axis) for axis in (0, 1))
    row, column = (
        context.cast(builder, value, kind, types.intp)
        for value, kind in zip(arguments[1:3], signature.args[1:3], strict=True)
    )
    if vars(config)["BOUNDSCHECK"]:  # read from the environment, so unknown to Numba's types
        few = builder.icmp_signed("<", width, ir.Constant(column.type, _N))
        end = builder.add(column, builder.select(few, width, ir.Constant(column.type, _N)))
        below = builder.icmp_unsigned(">=", row, height)
        before = builder.icmp_signed("<", column, ir.Constant(column.type, 0))
        beside = builder.or_(before, builder.icmp_signed(">", end, width))
        with builder.if_then(builder.or_(below, beside), likely=False):
            message = ("four numbers are asked for where a row does not have them",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    place = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(place, kind.as_pointer())


@_operation
def splat(typingctx: Any, x: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001 - Numba's signature
    """Return a Four that holds `x` four times."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        one = context.cast(builder, arguments[0], signature.args[0], types.float32)
        return _gather(builder, _VECTOR, [one] * _N)

    return FOUR(x), codegen


@_operation
def four(typingctx: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return the Four of `a`, `b`, `c` and `d`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = [
            context.cast(builder, value, kind, types.float32)
            for value, kind in zip(arguments, signature.args, strict=True)
        ]
        return _gather(builder, _VECTOR, parts)

    return FOUR(a, b, c, d), codegen


@_operation
def flags(typingctx: Any, a: Any, b: Any, c: Any, d: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return the Flags of `a`, `b`, `c` and `d`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        parts = [
            context.is_true(builder, kind, value)
            for value, kind in zip(arguments, signature.args, strict=True)
        ]
        return _gather(builder, _BITS, parts)

    return FLAGS(a, b, c, d), codegen


@_operation
def load_flags(
    typingctx: Any,  # noqa: ARG001
    table: Any,
    row: Any,
    column: Any,
) -> tuple[Any, Callable[..., Any]]:
    """Return four flags of ``table[row]``, a row of a contiguous bool table, from `column` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.VectorType(ir.IntType(8), _N)
        place = _pointer(context, builder, signature, arguments, kind)
        return builder.trunc(builder.load(place, align=1), _BITS)

    return FLAGS(table, row, column), codegen


@_operation
def flag(typingctx: Any, where: Any, i: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return flag `i` of `where`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.cast(builder, arguments[1], signature.args[1], types.int32)
        return builder.extract_element(arguments[0], place)

    return types.boolean(where, i), codegen


@_operation
def some(typingctx: Any, where: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return whether any flag of `where` is true."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        number = builder.bitcast(arguments[0], ir.IntType(_N))
        return builder.icmp_unsigned("!=", number, ir.Constant(number.type, 0))

    return types.boolean(where), codegen


@_operation
def element(typingctx: Any, value: Any, i: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return element `i` of `value`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = context.cast(builder, arguments[1], signature.args[1], types.int32)
        return builder.extract_element(arguments[0], place)

    return types.float32(value, i), codegen


@_operation
def load(typingctx: Any, table: Any, row: Any, column: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return four numbers of ``table[row]``, a row of a contiguous float32 table, from `column` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, arguments), align=4)

    return FOUR(table, row, column), codegen


@_operation
def store(
    typingctx: Any,  # noqa: ARG001
    table: Any,
    row: Any,
    column: Any,
    value: Any,
) -> tuple[Any, Callable[..., Any]]:
    """Write `value` into ``table[row]``, a row of a contiguous float32 table, from `column` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[3], _pointer(context, builder, signature, arguments), align=4)
        return context.get_dummy_value()

    return types.void(table, row, column, value), codegen


@_operation
def prefetch(typingctx: Any, table: Any, row: Any, column: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Let the processor fetch four numbers of ``table[row]``, from `column` on, that are soon written."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.globals.get("llvm.prefetch.p0i8")
        function = function or ir.Function(builder.module, kind, "llvm.prefetch.p0i8")
        place = builder.bitcast(_pointer(context, builder, signature, arguments), byte)
        hints = (_WRITE, _SOON, _DATA)
        builder.call(function, [place, *(ir.Constant(number, hint) for hint in hints)])
        return context.get_dummy_value()

    return types.void(table, row, column), codegen


@_operation
def root(typingctx: Any, value: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return the square root of each element."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        kind = ir.FunctionType(_VECTOR, [_VECTOR])
        function = builder.module.globals.get("llvm.sqrt.v4f32")
        return builder.call(function or ir.Function(builder.module, kind, "llvm.sqrt.v4f32"), arguments)

    return FOUR(value), codegen


@_operation
def at_most(typingctx: Any, one: Any, other: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return flags: true where ``one <= other``, false where either is NaN."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.fcmp_ordered("<=", arguments[0], arguments[1])

    return FLAGS(one, other), codegen


@_operation
def below(typingctx: Any, one: Any, other: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return flags: true where ``one < other``, false where either is NaN."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.fcmp_ordered("<", arguments[0], arguments[1])

    return FLAGS(one, other), codegen


@_operation
def both(typingctx: Any, one: Any, other: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return flags: true where both `one` and `other` are true."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.and_(arguments[0], arguments[1])

    return FLAGS(one, other), codegen


@_operation
def pick(typingctx: Any, where: Any, one: Any, other: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Return `one` where `where` is true, `other` elsewhere."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        return builder.select(*arguments)

    return FOUR(where, one, other), codegen


def _arithmetic(name: str) -> Any:
    @_operation
    def apply(typingctx: Any, one: Any, other: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return getattr(builder, name)(*arguments)

        return FOUR(one, other), codegen

    return apply


_ADD, _MUL, _DIV = map(_arithmetic, ("fadd", "fmul", "fdiv"))


@overload(operator.add)
def _add(one, other):  # type: ignore[no-untyped-def] # Numba compares signatures
    if one is FOUR and other is FOUR:
        return lambda one, other: _ADD(one, other)  # noqa: PLW0108 - an overload returns Python
    return None


@overload(operator.mul)
def _mul(one, other):  # type: ignore[no-untyped-def] # Numba compares signatures
    if one is FOUR and other is FOUR:
        return lambda one, other: _MUL(one, other)  # noqa: PLW0108 - an overload returns Python
    return None


@overload(operator.truediv)
def _div(one, other):  # type: ignore[no-untyped-def] # Numba compares signatures
    if one is FOUR and other is FOUR:
        return lambda one, other: _DIV(one, other)  # noqa: PLW0108 - an overload returns Python
    return None
