"""Define Numba's type of a *reference*: a record that kernels read in place, by its address.

For a record by value Numba passes every field of every array separately: hundreds of numbers for the context
of the loop. It also repeats the record's type in every symbol name. A reference is one address, and reading a
field is one load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import from_dtype, types
from numba.extending import infer_getattr, lower_getattr_generic, models, register_model

from onlineauto.jit.compiler.numba_private import AttributeTemplate, value_of
from onlineauto.jit.packing import ArrayKind, Kind, Number, RecordKind, TupleKind

if TYPE_CHECKING:
    from collections.abc import Sequence

_WORD = ir.IntType(64)
_NUMBERS: dict[str, types.Type] = {
    "?": types.boolean, "b": types.int8, "B": types.uint8, "h": types.int16, "H": types.uint16,
    "i": types.int32, "I": types.uint32, "q": types.int64, "Q": types.uint64, "f": types.float32,
    "d": types.float64, "n": types.none,
}  # fmt: skip


class Reference(types.Type):
    """Numba's type of a record that is passed by its address."""

    def __init__(self, kind: RecordKind) -> None:
        self.kind = kind._replace(sealed=False)
        self.places = dict(zip(kind.record._fields, places_of(kind.items), strict=True))
        super().__init__(f"{kind.record.__name__}&{_number_of(self.kind)}")


@register_model(Reference)
class _ReferenceModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _WORD.as_pointer())  # type: ignore[no-untyped-call]


_numbers: dict[RecordKind, int] = {}


def _number_of(kind: RecordKind) -> int:
    """Return a number that identifies a kind of record in this process."""
    return _numbers.setdefault(kind, len(_numbers))


def words_of(kind: Kind) -> int:
    """Return the number of words of a kind."""
    if isinstance(kind, Number):
        return int(kind.code != "n")
    if isinstance(kind, ArrayKind):
        return 3 + 2 * kind.ndim
    if isinstance(kind, RecordKind) and kind.sealed:
        return 1
    return sum(map(words_of, kind.items))


def places_of(kinds: Sequence[Kind]) -> list[tuple[Kind, int]]:
    """Return each kind with the index of its first word."""
    places, at = [], 0
    for kind in kinds:
        places.append((kind, at))
        at += words_of(kind)
    return places


def type_of(kind: Kind, *, argument: bool = False) -> Any:
    """Return Numba's type of a field of a record of a kind, or of an argument of that kind."""
    known: Any = types  # Numba is not typed
    if isinstance(kind, Number):
        return _NUMBERS[kind.code]
    if isinstance(kind, ArrayKind):
        layout = "C" if kind.contiguous else "A"
        return known.Array(from_dtype(kind.dtype), kind.ndim, layout, readonly=not kind.writeable)
    if isinstance(kind, TupleKind):
        return known.BaseTuple.from_types(tuple(map(type_of, kind.items)))
    if argument and kind.by_value:
        return known.BaseTuple.from_types(tuple(map(type_of, kind.items)), pyclass=kind.record)
    return Reference(kind)


@infer_getattr
class _ReferenceFields(AttributeTemplate):
    key = Reference

    def generic_resolve(self, record: Any, name: str) -> Any:  # type: ignore[override]
        """Return the type of a field."""
        place = record.places.get(name)
        return None if place is None else type_of(place[0])


@lower_getattr_generic(Reference)  # type: ignore[no-untyped-call, untyped-decorator]
def _read_field(context: Any, builder: Any, record: Any, value: Any, name: str) -> Any:
    kind, at = record.places[name]
    return load(context, builder, kind, value, at)


def load(context: Any, builder: Any, kind: Kind, words: Any, at: int) -> Any:
    """Emit the instructions that read a field of a record; its words begin at index `at` of `words`."""
    if isinstance(kind, RecordKind):
        return (
            _load_word(builder, words, at, _WORD.as_pointer())
            if kind.sealed
            else _address(builder, words, at)
        )
    if isinstance(kind, TupleKind):
        return _load_items(context, builder, kind, words, at)
    if isinstance(kind, ArrayKind):
        return _load_array(context, builder, kind, words, at)
    if kind.code == "n":
        return context.get_dummy_value()
    if kind.code == "?":
        return builder.trunc(_load_word(builder, words, at, ir.IntType(8)), ir.IntType(1))
    return _load_word(builder, words, at, context.get_value_type(type_of(kind)))


def load_argument(context: Any, builder: Any, kind: Kind, words: Any, at: int) -> Any:
    """Emit the instructions that read an argument; its words begin at index `at` of `words`."""
    if isinstance(kind, RecordKind) and kind.by_value:
        return _load_items(context, builder, kind, words, at)
    return load(context, builder, kind, words, at)


def _load_items(context: Any, builder: Any, kind: RecordKind | TupleKind, words: Any, at: int) -> Any:
    items = [load(context, builder, item, words, at + i) for item, i in places_of(kind.items)]
    return context.make_tuple(builder, type_of(kind, argument=True), items)


def _address(builder: Any, words: Any, at: int) -> Any:
    return builder.gep(words, [ir.Constant(_WORD, at)], inbounds=True)


def _load_word(builder: Any, words: Any, at: int, kind: Any) -> Any:
    """Emit the load of a word as LLVM's type `kind`; the word is constant while a kernel runs."""
    word = builder.load(builder.bitcast(_address(builder, words, at), kind.as_pointer()), align=8)
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _load_array(context: Any, builder: Any, kind: ArrayKind, words: Any, at: int) -> Any:
    array = context.make_array(type_of(kind))(context, builder)
    array.nitems, array.itemsize = (_load_word(builder, words, at + i, _WORD) for i in (0, 1))
    array.data = _load_word(builder, words, at + 2, array.data.type)
    axes = [_load_word(builder, words, at + 3 + i, _WORD) for i in range(2 * kind.ndim)]
    array.shape = _gather(builder, array.shape.type, axes[: kind.ndim])
    array.strides = _gather(builder, array.strides.type, axes[kind.ndim :])
    return value_of(array)


def _gather(builder: Any, kind: Any, parts: list[Any]) -> Any:
    value = ir.Constant(kind, ir.Undefined)
    for i, part in enumerate(parts):
        value = builder.insert_value(value, part, i)
    return value


def store(context: Any, builder: Any, kind: Any, value: Any, words: Any, at: int) -> int:
    """Emit the instructions that store a value of a kind as words; return the number of words."""
    if isinstance(kind, types.BaseTuple):
        begin, items = at, kind.types  # type: ignore[attr-defined]
        for i, item in enumerate(items):
            at += store(context, builder, item, builder.extract_value(value, i), words, at)
        return at - begin
    if kind is types.none:
        return 0
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        parts = [array.nitems, array.itemsize, array.data]
        parts += [
            builder.extract_value(axes, i) for axes in (array.shape, array.strides) for i in range(kind.ndim)
        ]
        for i, part in enumerate(parts):
            builder.store(part, builder.bitcast(_address(builder, words, at + i), part.type.as_pointer()))
        return len(parts)
    if isinstance(kind, Reference):
        value = builder.ptrtoint(value, _WORD)
    elif kind is types.boolean:
        value = builder.zext(value, ir.IntType(8))
    builder.store(value, builder.bitcast(_address(builder, words, at), value.type.as_pointer()))
    return 1
