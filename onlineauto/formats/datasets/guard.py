"""The guard of everything that is read by Arrow: valid buffers, texts as bytes, and one kind of error."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from onlineauto.errors import InputError, OnlineautoError
from onlineauto.formats.datasets.arrow_arrays import pyarrow

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
    batches = part.batches(group, columns)
    while True:
        try:
            with arrow_errors():
                batch = next(batches, None)
        except UnreadableError as error:
            yield Piece(0, None, str(error))
            return
        if batch is None:
            return
        try:
            yield Piece(batch.num_rows, checked(batch))
        except UnreadableError as error:
            yield Piece(batch.num_rows, None, str(error))


def checked(batch: Any) -> Any:
    """Return a batch with texts as bytes, after a full validation of its buffers.

    Arrow itself checks neither indices of dictionaries nor offsets, and kernels would read outside of the
    buffers. Texts that are not UTF-8 are valid bytes.

    Raises
    ------
    UnreadableError
        A buffer is damaged.
    """
    with arrow_errors():
        batch.validate()  # the sizes of the buffers, which the export below needs
        batch = pyarrow().record_batch(_AsBytes(batch))
        batch.validate(full=True)
    return batch


def checked_table(table: Any) -> Any:
    """Return a table of Arrow, or a batch as a table, after a full validation of its buffers and texts.

    Raises
    ------
    UnreadableError
        A buffer is damaged, or a text is not UTF-8.
    """
    with arrow_errors():
        check_names(table.schema)
        table.validate(full=True)
        return table if hasattr(table, "to_batches") else pyarrow().Table.from_batches([table])


def check_names(schema: Any) -> None:
    """Reject names of columns and of their fields that are not UTF-8.

    Raises
    ------
    UnreadableError
        A name is not UTF-8.
    """
    try:
        schema.to_string(show_schema_metadata=False, show_field_metadata=False)
    except UnicodeDecodeError:
        raise UnreadableError("the name of a column is not UTF-8") from None


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
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_as_bytes(field.type)) for field in kind])
    if pa.types.is_map(kind):
        key, item = (field.with_type(_as_bytes(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(key, item, kind.keys_sorted)
    of_lists = (
        (pa.types.is_list, pa.list_),
        (pa.types.is_large_list, pa.large_list),
        (pa.types.is_list_view, pa.list_view),
        (pa.types.is_large_list_view, pa.large_list_view),
        (pa.types.is_fixed_size_list, lambda field: pa.list_(field, kind.list_size)),
    )
    for is_kind, list_of in of_lists:
        if is_kind(kind):
            return list_of(kind.value_field.with_type(_as_bytes(kind.value_type)))
    texts = {
        pa.string(): pa.binary(),
        pa.large_string(): pa.large_binary(),
        pa.string_view(): pa.binary_view(),
    }
    return texts.get(kind, kind)
