"""``Feed``: the sources of `fit` as blocks: files of any format, texts, blocks, and mappings."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from onlineauto.api.hints import table_advice
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.stream.read_ahead import read_ahead, saves_time
from onlineauto.engine.stream.source import open_source, read_all, read_blocks
from onlineauto.errors import EventTypeError, InputError
from onlineauto.features.block import Block
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.formats.options import TEXT, format_of, format_of_lines
from onlineauto.formats.sources.source import ByteSource, name_of
from onlineauto.interop.dicts import from_dicts
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.save_load import with_changed_options

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO

    from onlineauto.engine.stream.source import Sources
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.options import Configuration

_ENOUGH: Final = 1 << 16
"""Number of bytes that suffice to recognise the format."""


class Feed:
    """Reads sources for `Workspace.stream`; see `AutoModel.fit` for the possible sources."""

    def __init__(
        self,
        *,
        event_of: Callable[[Any, int, Diagnostics], Mapping[str, Any]],
        advance: Callable[[int], object],
        watched: bool,
        text_format: str | None = None,
    ) -> None:
        self._event_of, self._advance, self._watched, self._form = event_of, advance, watched, text_format
        self.head = b""
        self._identities: Iterable[str] = ()

    def __call__(
        self, source: Sources, configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        """Yield the blocks of a source, like `read_blocks`."""
        return read_blocks(self._blocks(source, configuration, problems), configuration, problems)

    def _blocks(
        self, source: Sources, configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        if isinstance(source, EventSource):
            for block in read_all(source, configuration, problems):
                yield block
                self._advance(len(block))
            return
        if source is None or isinstance(source, str | os.PathLike | bytes) or hasattr(source, "read"):
            yield from self._file(source, configuration, problems)
            return
        n_before, self._identities = 0, getattr(source, "name_columns", ())
        for kind, items in groupby(cast("Iterable[Any]", source), _kind_of):
            if kind is Block:
                blocks: Iterator[Block] = items
            elif kind is str:
                blocks = self._texts(items, configuration, problems)
            elif kind is os.PathLike:
                for item in items:
                    yield from self._file(item, configuration, problems)
                continue
            else:
                problems.reading = "event"
                blocks = self._events(items, configuration, problems, n_before)
            for block in blocks:
                n_before += len(block)
                yield block
                self._advance(len(block))

    def _events(
        self, items: Iterator[Any], configuration: Configuration, problems: Diagnostics, n_before: int
    ) -> Iterator[Block]:
        """Yield the blocks of events as mappings; `n_before` is the number of events before them."""
        features = configuration[FeatureOptions]
        events = (self._event_of(item, number, problems) for number, item in enumerate(items, n_before))
        return from_dicts(
            events,
            hash=features.hash,
            hash_seed=features.hash_seed,
            first=n_before,
            name_columns={*features.name_columns, *self._identities},
        )

    def _texts(
        self, items: Iterator[str | bytes], configuration: Configuration, problems: Diagnostics
    ) -> Iterator[Block]:
        """Yield the blocks of texts with one event each, all in the format of the first text."""
        first = next(items)
        self.head = self.head or (first if isinstance(first, bytes) else first.encode("utf-8", "replace"))
        return read_all(_with_first(first, items), self._with_format(configuration, self.head), problems)

    def _file(self, source: Any, configuration: Configuration, problems: Diagnostics) -> Iterator[Block]:
        """Yield the blocks of a file, of standard input, or of the bytes of a file."""
        file: _Watched | None = None
        if isinstance(source, bytes) or (_is_path(source) and Path(source).is_file()):
            beginning = ByteSource(source)
            head = _head(beginning)
            beginning.close()
            if self._watched:
                file = _Watched(_open_file(source), self._advance, name=name_of(source))
        else:
            opened = ByteSource(source)
            head = _head(opened, lines=1)
            file = _Watched(opened, self._advance, name=opened.name, head=head)
        self.head = self.head or head
        formatted = self._with_format(configuration, head)
        reader = open_source(
            source if file is None else cast("BinaryIO", file), formatted, diagnostics=problems
        )
        try:
            ahead = formatted[RunOptions].threads > 1 and saves_time(source)
            yield from read_ahead(reader) if ahead else reader
        finally:
            if file is not None:
                file.close()

    def _with_format(self, configuration: Configuration, head: bytes) -> Configuration:
        """Return the options, with the format of the lines if they name none."""
        text_format = self._form or format_of_lines(head).name
        if text_format == TEXT.name or format_of(configuration) is not TEXT:
            return configuration
        return with_changed_options(
            configuration, REGISTRY.from_keywords(**{text_format: True}), name="the model"
        )


def _is_path(source: object) -> bool:
    return isinstance(source, str | os.PathLike) and source != "-"


def check_source(source: Any) -> Sources:
    """Return the source of `fit`, checked and converted for `Feed`."""
    if isinstance(source, Block):
        return [source]
    if isinstance(source, Mapping):
        raise InputError("a mapping is one event: give a list of events, or use learn")
    if isinstance(source, str) and ("\n" in source or "|" in source):
        raise InputError("this is text, and not a path: give a list of texts, or the bytes of a file")
    if hasattr(source, "read") or hasattr(source, "__iter__"):
        return cast("Sources", source)
    if isinstance(source, os.PathLike | EventSource):
        return source
    type_name = "None" if source is None else type(source).__name__
    advice = table_advice(source) or "give a path, a frame, blocks, or an iterable of mappings or texts"
    raise EventTypeError(f"{type_name} is not a source of events: {advice}")


def size_of(source: object) -> tuple[int | None, str]:
    """Return the size of a source, None if unknown, and the unit of the size."""
    if isinstance(source, bytes):
        return len(source), "B"
    if _is_path(source) and Path(cast("str", source)).is_file():
        return Path(cast("str", source)).stat().st_size, "B"
    if source is None or isinstance(source, str) or hasattr(source, "read"):
        return None, "B"
    if isinstance(source, list | tuple) and not any(isinstance(item, os.PathLike) for item in source):
        return sum(len(item) if isinstance(item, Block) else 1 for item in source), "events"
    return None, "events"


def _kind_of(item: object) -> type:
    """Return how an item of an iterable is read: as a block, a text, a file, or by `Feed.event_of`."""
    if isinstance(item, Block):
        return Block
    if isinstance(item, str | bytes):
        return str
    return os.PathLike if isinstance(item, os.PathLike) or hasattr(item, "read") else object


def _with_first(first: str | bytes, rest: Iterator[str | bytes]) -> Iterator[str | bytes]:
    yield first
    yield from rest


def _head(source: ByteSource, *, lines: int | None = None) -> bytes:
    """Return the first bytes of a source; wait for at most `lines` lines.

    Errors of unpacking are left to the reader.
    """
    head = b""
    try:
        while len(head) < _ENOUGH and (more := source.read(_ENOUGH - len(head))):
            head += more
            if lines is not None and head.lstrip().count(b"\n") >= lines:
                break
    except InputError:
        pass
    return head


def _open_file(source: Any) -> IO[bytes]:
    return io.BytesIO(source) if isinstance(source, bytes) else Path(source).open("rb", buffering=0)


class _Watched:
    """A file that reports the number of bytes read; its first bytes may have been read already."""

    def __init__(
        self,
        file: IO[bytes] | ByteSource,
        advance: Callable[[int], object],
        *,
        name: str,
        head: bytes = b"",
    ) -> None:
        self._file, self._advance, self.name, self._head = file, advance, name, head

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        data, self._head = self._head[:size], self._head[size:]
        data = data or self._file.read(size)
        self._advance(len(data))
        return data

    def close(self) -> None:
        """Close the file, if it was opened here."""
        self._file.close()
