"""The guard of everything that Arrow reads: valid buffers, texts as bytes, and one kind of error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import InputError, OnlineautoError
from onlineauto.formats.datasets.arrow_arrays import pyarrow, type_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


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
