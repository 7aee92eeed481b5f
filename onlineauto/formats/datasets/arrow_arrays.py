"""Convert Arrow arrays to NumPy arrays: numbers, codes of texts, and the columns of a batch by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.mappings.identities import spelling

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "MOST_ELEMENTS",
    "Texts",
    "as_float32",
    "as_texts",
    "column_at",
    "fields_of",
    "flatten",
    "is_list",
    "is_number",
    "is_text",
    "numbers_of",
    "path_at",
    "plain_values",
    "pyarrow",
    "run_codes",
    "texts_of",
    "type_at",
    "why_unsupported",
    "without_nan",
]

MOST_ELEMENTS: Final = 1 << 16
"""Maximum number of elements of a list, of actions of an event, and of choices."""


def pyarrow() -> Any:
    """Return the module pyarrow."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Parquet and Arrow datasets are read by pyarrow: pip install 'onlineauto[parquet]'",
            name=error.name,
        ) from None
    return pyarrow


def is_number(kind: Any) -> bool:
    """Return whether an Arrow type is a type of numbers or truth values."""
    t = pyarrow().types
    return bool(t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind))


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is a string or binary type, or a dictionary of one."""
    t = pyarrow().types
    if t.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        t.is_string,
        t.is_large_string,
        t.is_string_view,
        t.is_binary,
        t.is_large_binary,
        t.is_binary_view,
    )
    return any(test(kind) for test in tests)


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is a type of lists, of fixed or variable size."""
    t = pyarrow().types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def why_unsupported(kind: Any) -> str:
    """Return why a column of an Arrow type has no features, or "" if it can have some."""
    t = pyarrow().types
    if _has_features(kind) or t.is_null(kind):
        return ""
    if is_list(kind):
        inner = kind.value_type
        return "" if _has_features(inner) else f"of lists of {inner}, which have no features"
    hint = "; name its fields, as column.field" if t.is_struct(kind) else "; cast it to numbers or texts"
    return f"of {kind}, which has no features{hint}"


def _has_features(kind: Any) -> bool:
    value = kind.value_type if pyarrow().types.is_dictionary(kind) else kind
    return is_number(value) or (is_text(kind) and not pyarrow().types.is_dictionary(value))


def path_at(schema: Any, name: str) -> list[str]:
    """Return the names of the column and of the fields that lead to ``column.field``; [] if there is none."""
    paths = _paths(schema, name)
    if len(paths) > 1:
        of_structs = " and fields of structs" if max(map(len, paths)) > 1 else ""
        raise InputError(f"there are {len(paths)} columns{of_structs} {name!r}: rename them")
    return paths[0] if paths else []


def _paths(schema: Any, name: str) -> list[list[str]]:
    """Return all paths of a name, which several columns and fields of structs may have."""
    paths = [[name]] * len(schema.get_all_field_indices(name))
    head, _, rest = name.partition(".")
    while rest:
        for field in map(schema.field, schema.get_all_field_indices(head)):
            if pyarrow().types.is_struct(field.type):
                paths += [[head, *inner] for inner in _paths(pyarrow().schema(list(field.type)), rest)]
        more, _, rest = rest.partition(".")
        head = f"{head}.{more}"
    return paths


def type_at(schema: Any, name: str) -> Any:
    """Return the type of a column, or of a field named ``column.field``; None if there is none."""
    first, *rest = path_at(schema, name) or [""]
    kind: Any = schema.field(first).type if first in schema.names else None
    for each in rest:
        kind = kind.field(each).type
    return kind


def column_at(batch: Any, name: str) -> Any:
    """Return the array of a column of a batch, or of a field of a struct named ``column.field``."""
    path = path_at(batch.schema, name)
    if not path:
        raise InputError(f"there is no column {name!r}")
    for each in path:
        array = batch.column(each)
        batch = fields_of(array) if pyarrow().types.is_struct(array.type) else None
    return array


def fields_of(structs: Any) -> Any:
    """Return an array of structs as a batch; the fields of a struct that is null are null."""
    pa = pyarrow()
    return pa.RecordBatch.from_arrays(structs.flatten(), schema=pa.schema(list(structs.type)))


def flatten(array: Any) -> tuple[Any, NDArray[np.int64], NDArray[np.bool_]]:
    """Return the elements of lists, the first element of each list, and which lists are too long.

    Null has no elements, and a list that is too long has none either.
    """
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    too_long = lengths > MOST_ELEMENTS
    if too_long.any():
        import pyarrow.compute as pc

        array = pc.if_else(pyarrow().array(too_long), pyarrow().scalar(None, array.type), array)
        lengths[too_long] = 0
    return array.flatten(), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), too_long


def plain_values(array: Any, *, strict: bool = False) -> list[Any]:
    """Return the values of a column for Python.

    Bytes that are not UTF-8 become surrogates, which are hashed like the bytes. If `strict`, a text with such
    bytes is None.
    """
    return [_decoded(value, strict=strict) for value in array.to_pylist()]


def _decoded(value: Any, *, strict: bool) -> Any:
    if isinstance(value, list):
        return [_decoded(each, strict=strict) for each in value]
    if not isinstance(value, bytes):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None if strict else value.decode("utf-8", "surrogateescape")


def numbers_of(array: Any) -> NDArray[np.float32]:
    """Return a column of numbers as float32, with NaN for null."""
    pa = pyarrow()
    if pa.types.is_null(array.type):  # pandas writes a column without values with this type
        return np.full(len(array), np.nan, np.float32)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.uint8())
    elif pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    values = (array if missing is None else array.fill_null(0)).to_numpy(zero_copy_only=False)
    numbers = as_float32(values)
    if missing is not None:
        numbers[missing] = np.nan
    return numbers


def as_float32(values: NDArray[Any]) -> NDArray[np.float32]:
    """Return a copy of numbers as float32, infinite if they are too large; kernels need writeable arrays."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32)


def without_nan(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers with NaN replaced by 0, which is not a feature."""
    missing = np.isnan(value)
    return np.where(missing, np.float32(0), value) if missing.any() else value


def as_texts(array: Any) -> Any:
    """Return a column as texts; numbers are spelled as names, each distinct number once."""
    pa = pyarrow()
    if is_text(array.type) or pa.types.is_null(array.type):
        return array
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()  # a dictionary may contain a value twice
    encoded = array.dictionary_encode()
    values = encoded.dictionary
    is_whole = pa.types.is_integer(values.type)
    texts = values.cast(pa.string()) if is_whole else pa.array(map(spelling, values.to_pylist()), pa.string())
    return pa.DictionaryArray.from_arrays(encoded.indices, texts)


class Texts(NamedTuple):
    """A column of texts: the index of each row's text, -1 for null, and an Arrow array of the texts."""

    code: NDArray[np.int32]
    values: Any

    def bytes_of(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Return the bytes of all texts, and the first byte of each: uint8[:], int64[n + 1]."""
        pa = pyarrow()
        values = self.values
        large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
        _, offsets, data = values.buffers()
        kind = np.int64 if large else np.int32
        if not len(values) or offsets is None:
            return np.zeros(0, np.uint8), np.zeros(1, np.int64)
        start = np.frombuffer(offsets, kind)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        low, high = int(start[0]), int(start[-1])
        if data is None or high == low:
            return np.zeros(0, np.uint8), start - low
        return np.frombuffer(data, np.uint8)[low:high].copy(), start - low


def texts_of(array: Any) -> Texts:
    """Return a column as `Texts`, with the column's dictionary if it has one."""
    pa = pyarrow()
    if pa.types.is_dictionary(array.type):
        values = array.dictionary
        if values.null_count or not is_text(values.type):
            return texts_of(array.dictionary_decode())
        indices = array.indices
        if indices.null_count:
            indices = indices.cast(pa.int32()).fill_null(-1)
        return Texts(indices.to_numpy(zero_copy_only=False).astype(np.int32), _with_offsets(values))
    code = np.arange(len(array), dtype=np.int32)
    if array.null_count:
        code[array.is_null().to_numpy(zero_copy_only=False)] = -1
    return Texts(code, _with_offsets(array))


def _with_offsets(values: Any) -> Any:
    """Return texts in the layout with offsets; other layouts are cast."""
    pa = pyarrow()
    is_view = pa.types.is_string_view(values.type) or pa.types.is_binary_view(values.type)
    return values.cast(pa.large_binary()) if is_view else values


def run_codes(array: Any) -> NDArray[np.int64]:
    """Return a code for each value of a column, different for different values; -1 for null."""
    pa = pyarrow()
    if pa.types.is_null(array.type):
        return np.full(len(array), -1, np.int64)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()  # a dictionary may contain a value twice
    encoded = array.dictionary_encode()
    indices = encoded.indices.cast(pa.int64())
    return np.asarray(indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
