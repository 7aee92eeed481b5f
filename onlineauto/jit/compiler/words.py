"""The intrinsics of `onlineauto.jit.words`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic

from onlineauto.jit.compiler.intrinsics import intrinsic_with_result

if TYPE_CHECKING:
    from collections.abc import Callable

LANES = 64
"""Number of bytes that `equal` and `below` compare at once."""
_WORD = ir.IntType(64)
_BYTES = ir.VectorType(ir.IntType(8), LANES)


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any, kind: Any, size: int) -> Any:
    """Return the address of `size` bytes of a uint8 array, with a bounds check if Numba checks indices."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    place = context.cast(builder, arguments[1], signature.args[1], types.intp)
    if vars(config)["BOUNDSCHECK"]:  # read from the environment, so unknown to Numba's types
        end = builder.add(place, ir.Constant(place.type, size))
        before = builder.icmp_signed("<", place, ir.Constant(place.type, 0))
        behind = builder.icmp_signed(">", end, builder.extract_value(array.shape, 0))
        with builder.if_then(builder.or_(before, behind), likely=False):
            message = ("bytes are read beyond the end of a text",)
            context.call_conv.return_user_exc(builder, IndexError, message)
    return builder.bitcast(builder.gep(array.data, [place]), kind.as_pointer())


def _little_endian(builder: Any, word: Any) -> Any:
    return word if sys.byteorder == "little" else builder.bswap(word)


def _load(bits: int, result: Any) -> Any:
    kind = ir.IntType(bits)

    @intrinsic_with_result(result, "data", "i")
    def load(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature, arguments, kind, bits // 8)
        return _little_endian(builder, builder.load(place, align=1))

    return load


load1: Any = _load(8, types.uint8)
"""Return byte `i` of a contiguous uint8 array, without the test for a negative index that ``data[i]`` has."""
load4: Any = _load(32, types.uint32)
"""Return four bytes of a contiguous uint8 array, from `i` on, as a uint32."""
load8: Any = _load(64, types.uint64)
"""Return eight bytes of a contiguous uint8 array, from `i` on, as a uint64."""


@intrinsic
def store8(typingctx: Any, data: Any, i: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Write the uint64 `word` as eight bytes of a contiguous uint8 array, from `i` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature, arguments, _WORD, 8)
        builder.store(_little_endian(builder, arguments[2]), place, align=1)
        return context.get_dummy_value()

    return types.void(data, i, types.uint64), codegen


def _compare(condition: str) -> Any:
    @intrinsic_with_result(types.uint64, "data", "i", "byte")
    def compare(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature, arguments, _BYTES, LANES)
        one = context.cast(builder, arguments[2], signature.args[2], types.uint8)
        first = builder.insert_element(ir.Constant(_BYTES, ir.Undefined), one, ir.Constant(_WORD, 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        other = builder.shuffle_vector(first, first, zeros)
        matches = builder.icmp_unsigned(condition, builder.load(place, align=1), other)
        word = builder.bitcast(matches, _WORD)
        return word if sys.byteorder == "little" else builder.bitreverse(word)

    return compare


equal: Any = _compare("==")
"""Return the 64-bit word whose bit j says whether ``data[i + j]``, of a uint8 array, equals `byte`."""
below: Any = _compare("<")
"""Return the 64-bit word whose bit j says whether ``data[i + j]``, of a uint8 array, is less than `byte`."""


@intrinsic
def first_one(typingctx: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the index of the lowest bit of a uint64 that is 1; 64 if none is."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def ones(typingctx: Any, word: Any) -> tuple[Any, Callable[..., Any]]:
    """Return the number of bits of a uint64 that are 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen
