"""``Feed``: the sources of `fit` as blocks: files of any format, texts, blocks, and mappings.

`progress_bar` displays how far a source is learnt; `nothing_learnt` is the error if nothing was.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import contextmanager, suppress
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple, cast

from onlineauto.engine.stream.read_ahead import read_ahead, saves_time
from onlineauto.engine.stream.source import open_source, read_all, read_blocks
from onlineauto.errors import EventTypeError, InputError, OptionError, install_hint
from onlineauto.features.block import Block
from onlineauto.features.options import FeatureOptions
from onlineauto.formats.lines.event_source import EventSource
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
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
    from onlineauto.workspace.workspace import Workspace

_ENOUGH: Final = 1 << 16
"""Number of bytes that suffice to recognise the format."""


class Bar(NamedTuple):
    """A progress bar: the function that advances it, and whether it is displayed."""

    advance: Callable[[int], object]
    shown: bool


@contextmanager
def progress_bar(*, show: bool | None, total: int | None, unit: str) -> Iterator[Bar]:
    """Display a bar with an estimate of the remaining time, and the total time at the end.

    With None for `show`, it is displayed if standard error is a terminal, or this is a notebook.
    """
    bar: Any = None
    watched = "ipykernel" in sys.modules or bool(sys.stderr and sys.stderr.isatty())
    if show or (show is None and watched):
        try:
            from tqdm.auto import tqdm
        except ModuleNotFoundError:
            if show:
                raise OptionError(f"a progress bar needs a package: {install_hint('progress')}") from None
        else:
            bar = tqdm(total=total, unit=unit if unit == "B" else f" {unit}", unit_scale=True)
    if bar is None:
        yield Bar(lambda _: None, shown=False)
        return

    def advance(n: int) -> None:
        with suppress(OSError):  # a terminal that was closed must not end the run
            bar.update(n)

    try:
        yield Bar(advance, shown=True)
    finally:
        with suppress(OSError):
            bar.close()


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
        return read_all(chain([first], items), self._with_format(configuration, self.head), problems)

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
            yield from read_ahead(reader) if saves_time(source) else reader
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


def nothing_learnt(workspace: Workspace, feed: Feed, problems: Diagnostics, *, events: int) -> InputError:
    """Return the error for a source from which nothing was learnt, with the likely reason."""
    hint = _hint(workspace, feed.head, binary=ProblemCode.CONTROL_BYTE in problems.counts)
    if events and not problems.total:
        label = "label" if workspace.kind == "simple" else "logged cost or reward"
        problem = f"the source has {count_of(events, 'event')}, and none with a {label}"
        return InputError(f"nothing was learnt: {problem}{hint}")
    if problems.total:
        return InputError(f"nothing was learnt{hint}\n{problems.summary()}")
    return InputError(f"nothing was learnt: the source has no events{hint}")


def _hint(workspace: Workspace, head: bytes, *, binary: bool) -> str:
    """Return the likely format of a source, if the model does not read it."""
    if binary:
        return "; it is not text"
    form, reads = format_of_lines(head), format_of(workspace.configuration)
    bandit = workspace.kind != "simple"
    if reads is not TEXT and form is not reads:
        return f"; it looks like {form.title}: leave {reads.name} out"
    of_bandit = form.log or head.startswith(b"shared") or b"\nshared" in head or b'"_multi"' in head
    if head and of_bandit and not bandit:
        return "; it looks like the log of a contextual bandit, which AutoML learns"
    if form.log:
        return "; rewards that came later than the decisions are joined with AutoML.join"
    if head and not of_bandit and bandit and form is TEXT and b"|" in head:
        return "; it looks like single lines, which AutoMLRegressor and AutoMLClassifier learn"
    if head and form is TEXT and b"|" not in head:
        return (
            "; it looks like neither VW text nor JSON: read tables with pandas or polars and pass the frame"
        )
    return ""


def refuse_names(source: object, names: Mapping[str, object]) -> None:
    """Raise an error with advice if columns are named for a source that has none."""
    for name, value in names.items():
        if value is not None:
            kind, advice = type(source).__name__, table_advice(source) or f"leave {name} out"
            raise InputError(f"{name} names a column of a frame, but the data is a {kind}: {advice}")


def table_advice(source: object) -> str:
    """Return how a source that looks like a table can be passed, or ""."""
    if isinstance(source, Mapping):
        return "make a frame of it, such as pandas.DataFrame(…)"
    if hasattr(source, "collect"):
        return "collect it, frame.collect()"
    if hasattr(source, "read_row_group") or hasattr(source, "get_batch"):
        return "pass its path, or the table that its read() or read_all() returns"
    if isinstance(source, list) and source and isinstance(source[0], str):
        return "its texts are events with labels; columns are those of Parquet: paths, a folder or a pattern"
    if not isinstance(source, str | os.PathLike):
        return ""
    if not Path(source).is_file():
        return f"there is no file of Parquet {os.fspath(source)!r}, nor in a folder of this name"
    return "it is no file of Parquet; read a table, such as CSV, with pandas or polars and pass the frame"


def count_of(n: int, noun: str) -> str:
    """Return a number of things as text."""
    return f"{n} {noun}{'' if n == 1 else 's'}"
