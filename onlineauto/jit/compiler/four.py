"""The intrinsics of `onlineauto.jit.four`, which says what each returns."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import config, types
from numba.extending import models, overload, register_model

from onlineauto.jit.compiler.intrinsics import intrinsic_with_result

_N = 4
_WRITE, _SOON, _DATA = 1, 3, 1
"""Hints of ``llvm.prefetch``: for a write, into the nearest cache, of data."""
_VECTOR = ir.VectorType(ir.FloatType(), _N)
_BITS = ir.VectorType(ir.IntType(1), _N)


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

    Memory of the same owner follows a row of fewer than four elements.
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
            message = ("four numbers are read beyond the end of a row",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    place = builder.gep(array.data, [builder.add(builder.mul(row, width), column)])
    return builder.bitcast(place, kind.as_pointer())


@intrinsic_with_result(FOUR, "x")
def splat(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    one = context.cast(builder, arguments[0], signature.args[0], types.float32)
    return _gather(builder, _VECTOR, [one] * _N)


@intrinsic_with_result(FOUR, "a", "b", "c", "d")
def four(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    parts = [
        context.cast(builder, value, kind, types.float32)
        for value, kind in zip(arguments, signature.args, strict=True)
    ]
    return _gather(builder, _VECTOR, parts)


@intrinsic_with_result(FLAGS, "a", "b", "c", "d")
def flags(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    parts = [
        context.is_true(builder, kind, value) for value, kind in zip(arguments, signature.args, strict=True)
    ]
    return _gather(builder, _BITS, parts)


@intrinsic_with_result(FLAGS, "table", "row", "column")
def load_flags(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = ir.VectorType(ir.IntType(8), _N)
    place = _pointer(context, builder, signature, arguments, kind)
    return builder.trunc(builder.load(place, align=1), _BITS)


@intrinsic_with_result(types.boolean, "where", "i")
def flag(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    place = context.cast(builder, arguments[1], signature.args[1], types.int32)
    return builder.extract_element(arguments[0], place)


@intrinsic_with_result(types.boolean, "where")
def some(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    number = builder.bitcast(arguments[0], ir.IntType(_N))
    return builder.icmp_unsigned("!=", number, ir.Constant(number.type, 0))


@intrinsic_with_result(types.float32, "value", "i")
def element(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    place = context.cast(builder, arguments[1], signature.args[1], types.int32)
    return builder.extract_element(arguments[0], place)


@intrinsic_with_result(FOUR, "table", "row", "column")
def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.load(_pointer(context, builder, signature, arguments), align=4)


@intrinsic_with_result(FOUR, "row", "at")
def load_from(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    at = context.cast(builder, arguments[1], signature.args[1], types.intp)
    if vars(config)["BOUNDSCHECK"]:
        last = builder.sub(builder.extract_value(array.shape, 0), ir.Constant(at.type, _N))
        before = builder.icmp_signed("<", at, ir.Constant(at.type, 0))
        with builder.if_then(builder.or_(before, builder.icmp_signed(">", at, last)), likely=False):
            message = ("four numbers are read beyond the end of an array",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.load(builder.bitcast(builder.gep(array.data, [at]), _VECTOR.as_pointer()), align=4)


@intrinsic_with_result(types.void, "table", "row", "column", "value")
def store(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    builder.store(arguments[3], _pointer(context, builder, signature, arguments), align=4)
    return context.get_dummy_value()


@intrinsic_with_result(types.void, "table", "row", "column")
def prefetch(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    function = builder.module.globals.get("llvm.prefetch.p0i8")
    function = function or ir.Function(builder.module, kind, "llvm.prefetch.p0i8")
    place = builder.bitcast(_pointer(context, builder, signature, arguments), byte)
    hints = (_WRITE, _SOON, _DATA)
    builder.call(function, [place, *(ir.Constant(number, hint) for hint in hints)])
    return context.get_dummy_value()


@intrinsic_with_result(FOUR, "value")
def root(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR])
    function = builder.module.globals.get("llvm.sqrt.v4f32")
    return builder.call(function or ir.Function(builder.module, kind, "llvm.sqrt.v4f32"), arguments)


@intrinsic_with_result(FLAGS, "one", "other")
def at_most(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fcmp_ordered("<=", arguments[0], arguments[1])


@intrinsic_with_result(FLAGS, "one", "other")
def below(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.fcmp_ordered("<", arguments[0], arguments[1])


@intrinsic_with_result(FLAGS, "one", "other")
def both(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.and_(arguments[0], arguments[1])


@intrinsic_with_result(FOUR, "where", "one", "other")
def pick(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.select(*arguments)


def _arithmetic(name: str) -> Any:
    def apply(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, name)(*arguments)

    return intrinsic_with_result(FOUR, "one", "other")(apply)


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
