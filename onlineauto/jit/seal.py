"""``Sealed``: a tuple of arrays, unpacked once for a kernel that takes it again and again.

On each call of a kernel Numba unpacks every array of every argument. With fifty arrays that takes longer than
predicting an event. A sealed tuple is unpacked when it is made. A kernel receives only its address, and
`opened` reads the tuple from there. The Sealed keeps the arrays alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.extending import NativeValue, intrinsic, models, register_model, unbox

from onlineauto.jit.kernel import entry_kernel
from onlineauto.jit.numba_private import Typed, fingerprint_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["Sealed", "opened"]

T = TypeVar("T")

_FIRST_SIZE = 1 << 14


class SealedType(types.Type):
    """Numba's type of a sealed tuple; `kind` is the type of the tuple."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"Sealed({kind})")


@register_model(SealedType)
class _SealedModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ir.IntType(64))  # type: ignore[no-untyped-call]


@unbox(SealedType)  # type: ignore[no-untyped-call, untyped-decorator]
def _unbox(typ: Any, sealed: Any, context: Any) -> Any:  # noqa: ARG001 - Numba's signature
    address = context.pyapi.object_getattr_string(sealed, "address")
    value = context.pyapi.long_as_longlong(address)
    context.pyapi.decref(address)
    return NativeValue(value)  # type: ignore[no-untyped-call]


def _write(typingctx: Any, value: Any, memory: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    """Write `value` into `memory` if it is large enough; return the size in bytes that `value` needs."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        size = context.get_constant(types.intp, context.get_abi_sizeof(arguments[0].type))
        with builder.if_then(builder.icmp_signed("<=", size, builder.extract_value(array.shape, 0))):
            builder.store(arguments[0], builder.bitcast(array.data, arguments[0].type.as_pointer()), align=1)
        return size

    return types.intp(value, memory), codegen


def _opened(typingctx: Any, sealed: Any) -> tuple[Any, Callable[..., Any]]:  # noqa: ARG001
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)

    return sealed.kind(sealed), codegen


_write_into: Any = intrinsic(_write)
opened: Any = intrinsic(_opened)
"""Return the tuple of a Sealed, inside a kernel that received it. It is valid until that call returns."""


@entry_kernel
def _seal(value: Any, memory: NDArray[np.uint8]) -> int:
    return _write_into(value, memory)  # type: ignore[no-any-return]


_KINDS: dict[bytes, SealedType] = {}
"""Types by the fingerprint of their values: looking one up is a hundred times faster than `numba.typeof`."""


def _kind_of(value: Any) -> SealedType:
    fingerprint = fingerprint_of(value)
    if fingerprint not in _KINDS:
        _KINDS[fingerprint] = SealedType(typeof(value))  # type: ignore[no-untyped-call]
    return _KINDS[fingerprint]


class Sealed(Typed, Generic[T]):
    """A tuple of arrays, numbers and such tuples; a kernel that receives it calls `opened` to read it.

    Attributes
    ----------
    value : tuple
        The tuple. The content of its arrays may change, the arrays may not.
    """

    __slots__ = ("_memory", "address", "value")

    def __init__(self, value: T) -> None:
        super().__init__(_kind_of(value))
        self.value = value
        self._memory = np.empty(_FIRST_SIZE, np.uint8)
        size = _seal(value, self._memory)
        if size > len(self._memory):
            self._memory = np.empty(size, np.uint8)
            _seal(value, self._memory)
        self.address = self._memory.ctypes.data

    def __reduce__(self) -> tuple[type[Sealed[T]], tuple[T]]:
        """Seal a copy anew: the address belongs to this object's memory."""
        return Sealed, (self.value,)
