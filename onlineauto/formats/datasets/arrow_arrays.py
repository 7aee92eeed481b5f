"""Convert Arrow arrays to NumPy arrays: numbers, codes of texts, and the columns of a batch by name.

Everything that Arrow reads is `checked`: valid buffers, texts as bytes, and one kind of error.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from onlineauto.errors import InputError, OnlineautoError, install_hint
from onlineauto.formats.mappings.identities import spelling

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

MOST_ELEMENTS: Final = 1 << 16
"""Maximum number of elements of a list, of actions of an event, and of choices."""


def pyarrow() -> Any:
    """Return the module pyarrow."""
    try:
        import pyarrow
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"Parquet and Arrow datasets are read by pyarrow: {install_hint('parquet')}",
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
    for field in rest:
        kind = kind.field(field).type
    return kind


def column_at(batch: Any, name: str) -> Any:
    """Return the array of a column of a batch, or of a field of a struct named ``column.field``."""
    path = path_at(batch.schema, name)
    if not path:
        raise InputError(f"there is no column {name!r}")
    for field in path:
        array = batch.column(field)
        batch = fields_of(array) if pyarrow().types.is_struct(array.type) else None
    return array


def fields_of(structs: Any) -> Any:
    """Return an array of structs as a batch; the fields of a struct that is null are null."""
    pa = pyarrow()
    return pa.RecordBatch.from_arrays(structs.flatten(), schema=pa.schema(list(structs.type)))


def flatten(array: Any) -> tuple[Any, NDArray[np.int64], NDArray[np.bool_]]:
    """Return the elements of lists, the first element of each list, and which lists are too long.

    Null and a list that is too long have no elements.
    """
    lengths = array.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    too_long = lengths > MOST_ELEMENTS
    if too_long.any():
        import pyarrow.compute as pc

        array = pc.if_else(pyarrow().array(too_long), pyarrow().scalar(None, array.type), array)
        lengths[too_long] = 0
    return array.flatten(), np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64), too_long


def plain_values(array: Any, *, strict: bool = False) -> list[Any]:
    """Return a column for Python; bytes that are not UTF-8 are surrogates or, if `strict`, None."""
    return [_decoded(value, strict=strict) for value in array.to_pylist()]


def _decoded(value: Any, *, strict: bool) -> Any:
    if isinstance(value, list):
        return [_decoded(item, strict=strict) for item in value]
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


def without_zeros(value: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return numbers with NaN in place of 0, which is not a feature."""
    return np.where(value == 0, np.float32(np.nan), value)


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


class UnreadableError(InputError):
    """A file, a row group or a batch that Arrow cannot read, or whose buffers are damaged."""


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Raise every error of Arrow, and of the libraries that it calls, as an `UnreadableError`."""
    try:
        yield
    except OnlineautoError:
        raise
    except Exception as error:  # Arrow's errors have no common base class
        text = str(error).partition("\n")[0] or type(error).__name__
        raise UnreadableError(text.encode("utf-8", "backslashreplace").decode()) from None


class Piece(NamedTuple):
    """A batch that was read, or the reason why its rows cannot be used."""

    rows: int
    batch: Any | None
    problem: str = ""


def read_group(part: Any, group: int, columns: Sequence[str]) -> Iterator[Piece]:
    """Yield the checked batches of a row group; the last piece has no rows if the rest cannot be read."""
    batches, batch = part.batches(group, columns), None
    while True:
        try:
            with arrow_errors():
                batch = next(batches, None)
            if batch is None:
                return
            piece = Piece(batch.num_rows, checked(batch, columns))
        except UnreadableError as error:
            piece = Piece(0 if batch is None else batch.num_rows, None, str(error))
        yield piece
        batch = None


def checked(batch: Any, columns: Sequence[str]) -> Any:
    """Return a batch that has some columns, with texts as bytes, after a full validation of its buffers.

    Arrow itself checks neither indices of dictionaries nor offsets, and kernels would read outside of the
    buffers. Texts that are not UTF-8 are valid bytes.
    """
    with arrow_errors():
        for name in set(columns).difference(batch.schema.names):
            if type_at(batch.schema, name) is None:
                raise UnreadableError(f"it has no column {name!r}")
        batch.validate()  # the sizes of the buffers, which the export below needs
        batch = pyarrow().record_batch(_AsBytes(batch))
        batch.validate(full=True)
    return batch


def checked_table(table: Any) -> Any:
    """Return a table of Arrow, or a batch as a table, after a full validation of its buffers and texts."""
    with arrow_errors():
        check_names(table.schema)
        table.validate(full=True)
        return table if hasattr(table, "to_batches") else pyarrow().Table.from_batches([table])


def check_names(schema: Any) -> None:
    """Decode the names of columns and of their fields, which raises an error if they are not UTF-8."""
    fields = list(schema)
    while fields:
        field = fields.pop()
        str(field.name)
        fields += [field.type.field(i) for i in range(field.type.num_fields)]


class _AsBytes:
    """The buffers of a batch under a schema in which texts are bytes; nothing is copied."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Return the schema and the buffers as capsules of Arrow's C interface."""
        fields = [field.with_type(_as_bytes(field.type)) for field in self._batch.schema]
        return pyarrow().schema(fields).__arrow_c_schema__(), self._batch.__arrow_c_array__()[1]


def _as_bytes(kind: Any) -> Any:
    """Return a type with the type of bytes in place of each type of texts."""
    pa = pyarrow()
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _as_bytes(kind.value_type), kind.ordered)
    fields = [field.with_type(_as_bytes(field.type)) for field in map(kind.field, range(kind.num_fields))]
    for is_kind, type_of in (
        (pa.types.is_struct, lambda *fields: pa.struct(fields)),
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_fixed_size_list, lambda field: pa.list_(field, kind.list_size)),
        (pa.types.is_string, pa.binary),
        (pa.types.is_large_string, pa.large_binary),
        (pa.types.is_string_view, pa.binary_view),
    ):
        if is_kind(kind):
            return type_of(*fields)
    return kind
