"""The files of a dataset, each a `DatasetFile`: of a path, pattern, folder, address or `pyarrow` dataset."""

from __future__ import annotations

import glob
import os
import re
import zlib
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError
from onlineauto.formats.datasets.arrow_arrays import (
    UnreadableError,
    arrow_errors,
    check_names,
    checked,
    pyarrow,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

BEGIN: Final = b"PAR1"
"""First bytes of a Parquet file."""
STREAMED: Final = BEGIN + b"\x15"
"""First bytes of a Parquet file and the first byte of a page; no text begins with these bytes."""
_ENDINGS: Final = (".parquet", ".pq")
_BATCH_BYTES: Final = 1 << 24
_MOST_ROWS: Final = 1 << 16
_MOST_ROWS_OF_FILE: Final = 1 << 48
_PIECE: Final = 1 << 20
"""Number of bytes read at a time from a column of a row group; a row group may be larger than memory."""
_PATTERN: Final = re.compile(r"[*?\[]")


def is_address(path: str) -> bool:
    """Return whether a path is an address such as ``s3://bucket/logs``."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", path) is not None


def is_dataset(source: object) -> bool:
    """Return whether a source is a path of Parquet: a file, a folder, a pattern or an address.

    >>> is_dataset("logs/*.parquet"), is_dataset("s3://bucket/logs"), is_dataset("events.txt")
    (True, True, False)
    """
    if not isinstance(source, str | os.PathLike):
        return False
    path = os.fspath(source)
    if not isinstance(path, str) or path in ("-", ""):
        return False
    if path.startswith("kafka://"):
        raise InputError(
            f"a topic is read by another command: onlineauto topic {path}; in Python by TopicSource"
        )
    if is_address(path) or path.endswith(_ENDINGS):
        return True
    try:
        if os.path.isdir(path):  # noqa: PTH112 - a path may be text
            return any(name.endswith(_ENDINGS) for _, names in _folders(path, ()) for name in names)
        if os.path.isfile(path):  # noqa: PTH113
            with Path(path).open("rb") as file:
                return file.read(4) == BEGIN
    except (OSError, ValueError):
        return False
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetFile:
    """A file, or another part of a dataset, that can be opened.

    `size` is 0 if it is unknown; `values` are columns that are not in the file but in the names of its
    folders; `opener` returns a `ParquetPart`, a `FragmentPart` or a `ReaderPart`.
    """

    name: str
    size: int
    values: Mapping[str, Any]
    opener: Callable[[], Any]

    def open(self) -> Any:
        """Open the file; raise `UnreadableError` if that is not possible."""
        with arrow_errors():
            opened = self.opener()
            check_names(opened.schema)
        return opened


class ParquetPart:
    """An open Parquet file."""

    def __init__(
        self, filesystem: Any, path: str, values: Mapping[str, Any], declared: Any | None = None
    ) -> None:
        import pyarrow.parquet as pq

        self._parquet = pq
        self._source = filesystem.open_input_file(path)
        self._file = self._open_parquet(None)
        self.metadata = self._file.metadata
        self._values = _with_nulls(values, self._file.schema_arrow, declared)
        self.schema = _with_values(self._file.schema_arrow, self._values)
        self.groups = [self.metadata.row_group(i).num_rows for i in range(self.metadata.num_row_groups)]
        if min(self.groups, default=0) < 0 or sum(self.groups) > _MOST_ROWS_OF_FILE:
            raise UnreadableError(f"its row groups have {self.groups} rows")
        self._read_by: tuple[str, ...] | None = None
        try:
            self._check_columns(range(len(self.groups)))
            self._is_whole = True
        except Exception:  # of Arrow; the row groups are checked one by one
            self._is_whole = False

    def _open_parquet(self, dictionaries: Sequence[str] | None) -> Any:
        known = {} if dictionaries is None else {"metadata": self.metadata}
        return self._parquet.ParquetFile(
            self._source,
            read_dictionary=dictionaries,
            buffer_size=_PIECE,
            pre_buffer=False,
            page_checksum_verification=True,  # of pages that have a checksum
            **known,
        )

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[Any]:
        """Yield the batches of a row group with these columns; a field of a struct needs its whole column."""
        if not self._is_whole:
            self._check_columns([group])
        tops = {_top(name, self._file.schema_arrow.names) for name in columns}
        metadata = self.metadata.row_group(group)
        leaves = [metadata.column(i) for i in range(metadata.num_columns)]
        leaves_to_read = [leaf for leaf in leaves if _top(leaf.path_in_schema, tops) in tops]
        texts = tuple(leaf.path_in_schema for leaf in leaves_to_read if _repeats(leaf))
        if texts != self._read_by:
            self._file, self._read_by = self._open_parquet(texts), texts
        paths = [leaf.path_in_schema for leaf in leaves_to_read]
        size = sum(max(leaf.total_uncompressed_size, 4 * leaf.num_values) for leaf in leaves_to_read)
        rows = max(metadata.num_rows, 1)
        at_once = min(max(_BATCH_BYTES * rows // max(size, 1), 64), _MOST_ROWS)
        for batch in self._file.iter_batches(
            batch_size=at_once, row_groups=[group], columns=paths, use_threads=False
        ):
            yield _with_columns(batch, self._values)

    def _check_columns(self, groups: Sequence[int]) -> None:
        """Raise the error of damaged metadata of a column, which ends the process if Python asks for it.

        Arrow checks the metadata of all columns before it reads data, which this source does not have.
        """
        ahead = SimpleNamespace(**{name: getattr(self._source, name) for name in ("closed", "seek", "tell")})
        source = pyarrow().PythonFile(ahead, mode="r")
        file = self._parquet.ParquetFile(source, metadata=self.metadata, pre_buffer=True)
        with suppress(AttributeError):  # of its read
            next(file.iter_batches(row_groups=groups), None)

    def close(self) -> None:
        """Close the file."""
        self._file.close(force=True)
        self._source.close()


def _repeats(leaf: Any) -> bool:
    """Return whether a column of a row group stores its texts in a dictionary."""
    if leaf.physical_type != "BYTE_ARRAY" or not leaf.has_dictionary_page:
        return False
    return bool(leaf.total_uncompressed_size < 8 * max(leaf.num_values, 1))


def _top(name: str, tops: Iterable[str]) -> str:
    """Return the column of a name, or of the struct that contains the field of this name; "" if none."""
    if name in tops:
        return name
    return next((top for top in tops if name.startswith(f"{top}.")), "")


class FragmentPart:
    """Another part of a dataset, such as a file of Arrow IPC or CSV, or a table in memory."""

    def __init__(self, fragment: Any, schema: Any, values: Mapping[str, Any]) -> None:
        import pyarrow.dataset as ds

        self._fragment, self._ds, self._format = fragment, ds, getattr(fragment, "format", None)
        self._values = _with_nulls(values, fragment.physical_schema, schema)
        self.schema = _with_values(fragment.physical_schema, self._values)
        self._own = [name for name in schema.names if name in fragment.physical_schema.names]
        self.groups = [-1]

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[Any]:  # noqa: ARG002 - there is one
        """Yield all batches."""
        tops = [top for top in self._own if any(_top(name, [top]) for name in columns)]
        options: dict[str, Any] = {}
        if isinstance(self._format, self._ds.CsvFileFormat):
            of_csv = self._format.default_fragment_scan_options
            (convert := of_csv.convert_options).check_utf8 = False
            read = {"convert_options": convert, "read_options": of_csv.read_options}
            options["fragment_scan_options"] = self._ds.CsvFragmentScanOptions(**read)
        if isinstance(self._format, self._ds.IpcFileFormat):
            batches = self._ipc_batches(tops)
        else:
            options |= {"use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}
            batches = self._fragment.to_batches(columns=tops, batch_size=_MOST_ROWS, **options)
        for batch in batches:
            yield _with_columns(batch, self._values)

    def _ipc_batches(self, tops: Sequence[str]) -> Iterator[Any]:
        """Yield columns of the batches of an IPC file; a scan can end the process if a message is damaged."""
        names, ipc = self._fragment.physical_schema.names, pyarrow().ipc
        with self._fragment.open() as source:
            options = ipc.IpcReadOptions(included_fields=[names.index(top) for top in tops])
            reader = ipc.open_file(source, options=options)
            for batch in map(reader.get_batch, range(reader.num_record_batches)):
                yield from (batch.slice(at, _MOST_ROWS) for at in range(0, batch.num_rows, _MOST_ROWS))

    def close(self) -> None:
        """Do nothing: a fragment is closed after the last batch."""


class ReaderPart:
    """The batches of a `pyarrow.RecordBatchReader`, which can be read once."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.schema = reader.schema
        self.groups = [-1]

    def batches(self, group: int, columns: Sequence[str]) -> Iterator[Any]:  # noqa: ARG002 - there is one
        """Yield the columns of the batches."""
        names = self.schema.names
        used = [i for i, name in enumerate(names) if any(_top(column, [name]) for column in columns)]
        for batch in self._reader:
            if not batch.schema.equals(self.schema):
                raise UnreadableError("a batch has other columns than its reader")
            yield batch.select(used)

    def close(self) -> None:
        """Do nothing: the reader belongs to the caller."""


def _with_nulls(values: Mapping[str, Any], schema: Any, declared: Any | None) -> dict[str, Any]:
    """Return the values of columns that a file does not have, with null for those only in the dataset."""
    nulls = {
        field.name: pyarrow().scalar(None, field.type)
        for field in (() if declared is None else declared)
        if field.name not in schema.names
    }
    return {**nulls, **values}


def _with_values(schema: Any, values: Mapping[str, Any]) -> Any:
    """Return a schema with added columns of folders."""
    pa = pyarrow()
    for name, value in values.items():
        if name not in schema.names:
            schema = schema.append(pa.field(name, pa.scalar(value).type))
    return schema


def _with_columns(batch: Any, values: Mapping[str, Any]) -> Any:
    """Return a batch with added columns of folders, each with a constant value."""
    pa = pyarrow()
    for name, value in values.items():
        if name not in batch.schema.names:
            batch = batch.append_column(name, pa.repeat(pa.scalar(value), batch.num_rows))
    return batch


def files_of_paths(paths: Iterable[str | os.PathLike[str]]) -> list[DatasetFile]:
    """Return the files of paths, patterns, folders and addresses, each sorted by name."""
    pyarrow()
    return _once([file for path in paths for file in _files_of_path(os.fspath(path))])


def _files_of_path(path: str) -> list[DatasetFile]:
    from pyarrow import fs

    filesystem, inside = fs.LocalFileSystem(), path
    try:
        if is_address(path):
            filesystem, inside = _file_system(path)
        if is_address(path) and _PATTERN.search(inside):
            names = _matching(filesystem, inside)
        elif not is_address(path) and _PATTERN.search(path) and not os.path.exists(path):  # noqa: PTH110
            names = sorted(_matching_here(path))
        else:
            [info] = filesystem.get_file_info([inside])
            if info.type == fs.FileType.NotFound:
                raise InputError(f"{path}: no such file or folder of Parquet")
            names = _in_folder(filesystem, inside) if info.type == fs.FileType.Directory else [inside]
        sizes = [info.size or 0 for info in filesystem.get_file_info(names)]
    except UnicodeEncodeError as error:
        raise InputError(f"{error.object!a}: Arrow opens no path that is not UTF-8: rename it") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be listed: {error}") from None
    if not names:
        raise InputError(f"{path}: there is no file of Parquet that matches")
    return [
        DatasetFile(
            name=name,
            size=size,
            values=(values := _folder_values(name)),
            opener=lambda name=name, values=values: ParquetPart(filesystem, name, values),  # type: ignore[misc]
        )
        for name, size in zip(names, sizes, strict=True)
    ]


def _file_system(path: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path in this file system."""
    from pyarrow import fs

    try:
        system, inside = fs.FileSystem.from_uri(path)
    except (ValueError, NotImplementedError, ImportError) as error:
        raise InputError(
            f"{path}: pyarrow has no file system for this address: {error}; fsspec+{path} asks fsspec"
        ) from None
    return system, inside


def _matching(filesystem: Any, pattern: str) -> list[str]:
    """Return the files of a file system that match a pattern, whose ``*`` does not match a slash."""
    from pyarrow import fs

    base = pattern[: _PATTERN.search(pattern).start()].rpartition("/")[0]  # type: ignore[union-attr]
    parts = re.split(r"(\*\*/?|\*|\?)", pattern)
    meanings = {"**": ".*", "**/": "(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    expression = re.compile("".join(meanings.get(part, re.escape(part)) for part in parts))
    entries = filesystem.get_file_info(fs.FileSelector(base, recursive=True))
    return sorted(info.path for info in entries if info.is_file and expression.fullmatch(info.path))


def _in_folder(filesystem: Any, folder: str) -> list[str]:
    """Return the Parquet files in a folder and its subfolders, without hidden files and logs."""
    from pyarrow import fs

    hidden = (".", "_")
    if isinstance(filesystem, fs.LocalFileSystem):
        names = (os.path.join(at, name) for at, files in _folders(folder, hidden) for name in files)  # noqa: PTH118
    else:
        entries = filesystem.get_file_info(fs.FileSelector(folder, recursive=True))
        names = (info.path for info in entries if info.is_file)
    base = folder.rstrip("/") + "/"
    return sorted(
        name
        for name in names
        if name.endswith(_ENDINGS)
        and not any(part.startswith(hidden) for part in name.removeprefix(base).split("/"))
    )


def _folders(folder: str, hidden: tuple[str, ...]) -> Iterator[tuple[str, list[str]]]:
    """Yield a folder and the folders in it, each once, with their files, none hidden; links come last."""
    links, seen = [folder], set[str]()
    for link in links:  # which grows
        for path, inner, names in os.walk(link):
            visible = sorted(name for name in inner if not name.startswith(hidden))
            inner[:] = visible if (real := os.path.realpath(path)) not in seen else []
            links += [at for name in inner if os.path.islink(at := os.path.join(path, name))]  # noqa: PTH114, PTH118
            yield path, names if real not in seen else []
            seen.add(real)


def _matching_here(pattern: str) -> list[str]:
    """Return the local files that match a pattern, whose ``**`` enters each folder once."""
    head, star, tail = (f"{pattern}/*" if pattern.endswith("/**") else pattern).partition("**/")
    if not star or (not head.endswith(("/", os.sep)) and head):
        return [path for path in glob.glob(pattern) if os.path.isfile(path)]  # noqa: PTH207, PTH113
    folders = (inner for base in glob.glob(head or os.curdir) for inner, _ in _folders(base, (".",)))  # noqa: PTH207
    found = {name for inner in folders for name in _matching_here(os.path.join(glob.escape(inner), tail))}  # noqa: PTH118
    return [os.path.normpath(name) for name in found]


def _once(files: Iterable[DatasetFile]) -> list[DatasetFile]:
    """Return the files without those that links lead to under another name."""
    names: dict[str, str] = {}
    real = (os.path.realpath(file.name) if os.path.lexists(file.name) else file.name for file in files)
    return [
        file for file, path in zip(files, real, strict=True) if names.setdefault(path, file.name) == file.name
    ]


def _folder_values(name: str) -> dict[str, str]:
    """Return the columns in the names of folders, such as ``day=2026-11-01/part-0.parquet``."""
    from urllib.parse import unquote

    parts = [part.partition("=") for part in re.split(r"[/\\]", name)[:-1] if "=" in part]
    return {unquote(column): unquote(value) for column, _, value in parts if column and value}


def files_of_dataset(source: Any) -> list[DatasetFile]:
    """Return the files of a `pyarrow.dataset.Dataset`, in its order, or of a `pyarrow.RecordBatchReader`."""
    if not hasattr(source, "get_fragments"):
        return [DatasetFile(name="<reader>", size=0, values={}, opener=lambda: ReaderPart(source))]
    import pyarrow.dataset as ds

    if options := getattr(source, "_scan_options", None):
        reader = source.scanner(use_threads=False, batch_readahead=1, fragment_readahead=1).to_reader
        if not isinstance(getattr(source, "format", None), ds.ParquetFileFormat):  # a filter reads buffers
            reader = partial(_filtered, source, options["filter"])
        return [
            DatasetFile(name="<filtered dataset>", size=0, values={}, opener=lambda: ReaderPart(reader()))
        ]
    files: list[DatasetFile] = []
    for fragment in source.get_fragments():
        values = ds.get_partition_keys(fragment.partition_expression)
        path = getattr(fragment, "path", "") or f"<fragment {len(files)}>"
        files.append(
            DatasetFile(
                name=path,
                size=_size(fragment),
                values=values,
                opener=_opener(fragment, source.schema, values),
            )
        )
    return _once(files)


def _filtered(source: Any, predicate: Any) -> Any:
    """Return a reader of the rows of a dataset that fulfil a predicate, of batches with valid buffers."""
    whole = source.replace_schema(source.schema)  # a copy
    whole._scan_options = {}  # noqa: SLF001 - a filtered dataset does not yield its fragments
    names = source.schema.names
    batches = (
        batch.select(names).cast(source.schema).filter(predicate)
        for fragment in whole.get_fragments()
        for batch in _part(fragment, source.schema).batches(0, names)
        if checked(batch, names)
    )
    return pyarrow().RecordBatchReader.from_batches(source.schema, batches)


def _part(fragment: Any, schema: Any) -> FragmentPart:
    import pyarrow.dataset as ds

    return FragmentPart(fragment, schema, ds.get_partition_keys(fragment.partition_expression))


def _opener(fragment: Any, schema: Any, values: Mapping[str, Any]) -> Callable[[], Any]:
    """Return a function that opens a fragment."""
    import pyarrow.dataset as ds

    if isinstance(fragment, ds.ParquetFileFragment) and fragment.path and fragment.filesystem is not None:
        return lambda: ParquetPart(fragment.filesystem, fragment.path, values, schema)
    return lambda: FragmentPart(fragment, schema, values)


def _size(fragment: Any) -> int:
    path, filesystem = getattr(fragment, "path", ""), getattr(fragment, "filesystem", None)
    if not path or filesystem is None:
        return 0
    with arrow_errors():
        [info] = filesystem.get_file_info([path])
    return int(info.size or 0)


def digest_of(files: Sequence[DatasetFile]) -> int:
    """Return a digest of the names and sizes of files."""
    return zlib.crc32("\n".join(f"{file.name}\t{file.size}" for file in files).encode("utf-8", "replace"))
