"""LineReader: the base class of readers of line formats, which turns bytes into Blocks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np

from onlineauto.errors import EventTypeError, InputError, ParseError
from onlineauto.features.block import DEFAULT, Block, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.lines.diagnostics import (
    MOST_TEXT,
    Diagnostic,
    Diagnostics,
    json_hint,
    make_diagnostic,
)
from onlineauto.formats.lines.line_kernels import DONE, GROW, STOPPED, find_cut
from onlineauto.formats.lines.mark_kernels import bitmap_size
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from onlineauto.formats.lines.reader_state_kernels import (
    FINE,
    NAME,
    NAMES,
    RULES,
    SIZES,
    STATE,
    Reader,
    insert,
    measure,
)
from onlineauto.formats.sources.source import SingleCaller, as_byte_source
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Rules as BlockRules
    from onlineauto.features.records import Records
    from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    from onlineauto.formats.sources.source import ByteSource, Source


LARGEST_EVENT = 2**30
"""Maximum number of bytes without the end of an event: a file that is not text must not fill the memory."""

_FIRST_TABLE = 1024


class RecordReader:
    """Owns the records that kernels fill from a buffer of text, and makes blocks of them."""

    objects: ClassVar[str] = ""
    """What the events are, as in `Block`."""

    def __init__(self, rules: ReaderRules, buffer: NDArray[np.uint8]) -> None:
        self.namespaces = Namespaces()
        self.read_by: BlockRules = {}  # the options by which events are read, stored in the blocks
        self._rules, self._buffer = rules, buffer
        self.records = _make_reader(rules)
        self.sizes = np.zeros(SIZES, np.int64)  # of the last event, if it was read alone

    @property
    def _state(self) -> Records:
        """The kernels' counters; an attribute would be those of the original after the reader is copied."""
        return self.records.state[0]

    def _make_records(self, **need: int) -> None:
        """Enlarge the arrays to the needed numbers of records, plus one record of each kind."""
        larger = {}
        for name, size in need.items():
            last = getattr(self.records, name)
            if len(last) < size + 1:
                larger[name] = np.empty(size + size // 4 + 1, last.dtype)
        if larger:
            self.records = self.records._replace(**larger)

    def _collect_names(self) -> None:
        """Add new names of the kernel's table to the namespaces."""
        names, known = self.records.names, len(self.namespaces)
        if known == self._state["names"]:
            return
        fresh = names[names["number"] >= known]
        rows = [
            (number, self._buffer[start:end].tobytes(), hash_)
            for _, start, end, number, hash_ in fresh.tolist()
        ]
        if self._state["default_name"] >= known:
            rows.append((int(self._state["default_name"]), DEFAULT, int(self._rules.default_hash)))
        for _, name, hash_ in sorted(rows):
            self.namespaces.add(name or b"\0", hash_)

    def _grow_names(self) -> None:
        """Double the table of names."""
        names = _make_names(2 * len(self.records.names))
        insert(self.records.names, names)
        self.records = self.records._replace(names=names)

    def names_of(self, event: object) -> BlockRules:  # noqa: ARG002 - JSON depends on it
        """Return the rules by which the names of an event are made, as far as they are known."""
        return self.read_by

    def make_block(self) -> Block:
        """Return a Block with copies of the records."""
        reader, state = self.records, self._state
        return Block(
            event_start=reader.events[: state["events"] + 1].copy(),
            lines=_copy(reader.lines, state["lines"] + 1),
            costs=_copy(reader.costs, state["costs"]),
            spans=_copy(reader.spans, state["spans"] + 1),
            features=_copy(reader.features, state["features"]),
            tag=reader.tag[: state["tag_bytes"]].copy(),
            namespaces=self.namespaces,
            rules=self.read_by,
            objects=self.objects,
        )


def _copy(records: Records, n: int) -> Records:
    """Return a bytewise copy of the first `n` records, since NumPy copies records field by field."""
    copied = np.empty(n, records.dtype)
    copied.view(np.uint8)[:] = records[:n].view(np.uint8)
    return copied


def _make_reader(rules: ReaderRules) -> Reader:
    """Return empty records for a text."""
    state = np.zeros(1, STATE)
    state["default_name"] = -1
    return Reader(
        rules=np.array([rules], RULES),
        state=state,
        events=np.empty(0, np.int64),
        lines=np.empty(0, LINE),
        spans=np.empty(0, SPAN),
        features=np.empty(0, FEATURE),
        costs=np.empty(0, COST),
        tag=np.empty(0, np.uint8),
        names=_make_names(_FIRST_TABLE),
        marks=np.empty(0, np.uint8),
        breaks=np.empty(0, np.uint8),
    )


def _make_names(size: int) -> Records:
    names = np.zeros(size, NAME)
    names["number"] = -1
    return names


class NotOneEventError(InputError):
    """A text is not exactly one event."""

    def __init__(self, message: str, problems: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.problems = problems


_MOST = 1 << 16
"""Maximum size of a text for which records are allocated in advance for any content."""


_LEAST = 1 << 13
"""Minimum size of the buffer for a text; readers of single events have this size."""


class _Kernels(NamedTuple):
    """The kernels that read single events, bound to the records of a reader."""

    buffer: NDArray[np.uint8]
    reader: Reader
    most_bytes: int
    view: memoryview[int]
    sizes: memoryview[int]
    line_number: NDArray[Any]
    fatal: NDArray[Any]
    mark: Bound
    read: Bound
    measure: Bound


class LineReader(RecordReader, ABC):
    """Iterator over the events of a source, in Blocks; can be iterated once.

    Memory does not grow with the text, except for names of namespaces and for events larger than
    `block_bytes`, the number of bytes to read at a time. Events from a pipe are yielded as soon as they are
    complete. The iteration raises an `InputError` or, for a malformed line if these are fatal, a `ParseError`
    after all earlier events.

    A format implements `_complete`, `_size_for`, `_make_room`, `_read` and `_bind`.
    """

    _kernels: _Kernels | None = None

    def __init__(
        self,
        source: Source | ByteSource,
        rules: ReaderRules,
        *,
        block_bytes: int = 1 << 18,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        self.diagnostics = Diagnostics() if diagnostics is None else diagnostics
        self._bytes = as_byte_source(source, name=name)
        self.name = self._bytes.name
        self._turn = SingleCaller(self.name)
        # Twice the size, so that the first read is not followed by one into a full buffer.
        known = max(2 * len(source), _LEAST) if isinstance(source, bytes) else block_bytes
        self._text_bytes = min(block_bytes, known)
        super().__init__(self._complete(rules), np.empty(self._size_for(self._text_bytes), np.uint8))

    @property
    def _unit(self) -> Literal["line", "event"]:
        """Return the unit that is skipped if a line is malformed: the line, or the line's event."""
        return "line"

    @abstractmethod
    def _complete(self, rules: ReaderRules) -> ReaderRules:
        """Return the rules, completed with values that the format determines, such as `default_hash`."""

    @abstractmethod
    def _size_for(self, text_bytes: int) -> int:
        """Return the size of a buffer that begins with `text_bytes` bytes of text."""

    @abstractmethod
    def _make_room(self, end: int) -> None:
        """Fill the bitmaps of the buffer's first `end` bytes, and enlarge the records for these bytes."""

    @abstractmethod
    def _read(self, p: int, end: int) -> tuple[int, int]:
        """Call the kernel that reads from `p` on; return its reason to stop and the next position."""

    @abstractmethod
    def _bind(self, most_bytes: int) -> tuple[Bound, Bound]:
        """Allocate records for any text of `most_bytes` bytes; return kernels that mark and read a text."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy: all except the addresses of arrays."""
        return vars(self) | {"_kernels": None}

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of one or more complete events."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the blocks, from a generator that must be closed if it is not exhausted."""
        with self._turn, closing(self._bytes):
            yield from self._read_blocks()

    def begin_after(self, lines: int) -> None:
        """Let line numbers continue after `lines` lines."""
        self._state["line_number"] = lines

    def parse(self, text: bytes) -> list[Block]:
        """Return the Blocks of a separate text, without touching the source; `diagnostics` is replaced."""
        self.diagnostics = Diagnostics()
        self._state["line_number"], self._state["fatal"] = 0, False
        if len(text) > self._text_bytes:
            self._enlarge(2 * len(text), filled=0)
        self._buffer[: len(text)] = np.frombuffer(text, np.uint8)
        return list(self._parse(len(text)))

    def read(self, text: str | bytes | Sequence[str | bytes]) -> bool:
        """Read a text of one ordinary event into the records and measure it; return False for other texts."""
        if isinstance(text, list | tuple):
            text = join_lines(text)
        data: Any = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        end = len(data)
        kernels = self._kernels
        if end > min(_MOST, self._text_bytes):
            return False
        fits = kernels is not None and kernels.buffer is self._buffer and kernels.reader is self.records
        if kernels is None or not fits or end > kernels.most_bytes:
            self._kernels = kernels = self._bind_kernels(min(2 * end, _MOST))
        kernels.view[:end] = data
        kernels.line_number[0], kernels.fatal[0] = 0, False
        kernels.mark(end)
        reason, _ = kernels.read(end)
        kernels.measure()
        if kernels.sizes[NAMES] != len(self.namespaces):
            self._collect_names()
        if reason == DONE and kernels.sizes[FINE]:
            return True
        state = self.records.state[0]
        state["problem_count"], state["problems"] = 0, 0  # `parse_one` reads the text again and reports them
        return False

    def _bind_kernels(self, most_bytes: int) -> _Kernels:
        """Return the kernels, bound to records that are large enough for any text of `most_bytes` bytes."""
        mark, read = self._bind(most_bytes)
        reader, buffer, sizes = self.records, self._buffer, self.sizes
        return _Kernels(
            buffer,
            reader,
            most_bytes,
            buffer.data,
            sizes.data,
            reader.state["line_number"],
            reader.state["fatal"],
            mark,
            read,
            measure=Bound(measure, reader, sizes, brief=True),
        )

    def parse_one(self, text: str | bytes | Sequence[str | bytes]) -> Block:
        """Return the Block of a separate text, or of the lines of one, that is exactly one event.

        Raises
        ------
        NotOneEventError
            The text is not exactly one event.
        """
        text = join_lines(text)
        if not isinstance(text, str | bytes):
            raise EventTypeError(f"an event is text (str or bytes), not {type(text).__name__}")
        blocks = self.parse(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text)
        if len(blocks) != 1 or len(blocks[0]) != 1:
            n_events = sum(map(len, blocks))
            problems = "; ".join(map(str, self.diagnostics.kept)) or f"it has {n_events} events"
            message = f"the text is not one event: {problems}{json_hint(problems)}"
            raise NotOneEventError(message, self.diagnostics.kept)
        return blocks[0]

    def take_problems(self) -> Diagnostics:
        """Return the problems of the last parsed text, and clear them."""
        problems, self.diagnostics = self.diagnostics, Diagnostics()
        return problems

    def _enlarge(self, text_bytes: int, *, filled: int) -> None:
        """Replace the buffer by one for `text_bytes` bytes of text, and copy the first `filled` bytes."""
        try:
            buffer = np.empty(self._size_for(text_bytes), np.uint8)
        except MemoryError:
            raise InputError(f"{text_bytes} bytes of text do not fit into memory") from None
        buffer[:filled] = self._buffer[:filled]
        self._buffer, self._text_bytes = buffer, text_bytes

    def _read_blocks(self) -> Iterator[Block]:
        """Yield Blocks of the complete events in the buffer after each read."""
        filled, known = 0, 0
        failure: InputError | None = None
        separated = self._unit == "event"
        while True:
            try:
                if filled >= LARGEST_EVENT:
                    raise InputError(f"no event ends within {LARGEST_EVENT} bytes; is this text?")
                if filled == self._text_bytes:
                    self._enlarge(2 * filled, filled=filled)
                more = self._bytes.read(self._text_bytes - filled)
            except InputError as error:
                failure = self._locate(error)
                break
            if not more:
                break
            self._buffer[filled : filled + len(more)] = np.frombuffer(more, np.uint8)
            known, filled = filled, filled + len(more)
            cut = find_cut(self._buffer, known, filled, separated, self._rules.quirks.bare_separators)
            if cut:
                yield from self._parse(cut)
                self._buffer[: filled - cut] = self._buffer[cut:filled].copy()
                filled -= cut
        if failure is not None:
            raise failure
        yield from self._parse(filled)

    def _locate(self, error: InputError) -> InputError:
        """Return the error of the source with the source's name and the unreadable line."""
        line = int(self._state["line_number"]) + 1
        kind = EventTypeError if isinstance(error, EventTypeError) else InputError
        return kind(f"{self.name}:{line}: {error}; everything before this line was used")

    def _parse(self, end: int) -> Iterator[Block]:
        """Yield the events of the buffer's first `end` bytes."""
        self._make_room(end)
        reason, p = GROW, 0
        while reason == GROW:
            reason, p = self._read(p, end)
            self._collect_names()
            if reason == GROW:
                self._grow_names()
        last = self._collect_problems(stopped=reason == STOPPED)
        if self._state["events"]:
            yield self.make_block()
        if reason != DONE:
            assert last is not None
            raise ParseError(str(last), line=last.line, column=last.column)

    def _make_bitmaps(self, end: int) -> None:
        """Make the bitmaps large enough for `end` bytes."""
        if len(self.records.marks) < bitmap_size(end):
            marks, breaks = np.empty((2, bitmap_size(end)), np.uint8)
            self.records = self.records._replace(marks=marks, breaks=breaks)

    def _collect_problems(self, *, stopped: bool) -> Diagnostic | None:
        """Pass the kernel's problems to the diagnostics; return the last one."""
        state, diagnostic = self._state, None
        n = int(state["problems"])
        for i, (code, line, column, start, end) in enumerate(state["problem"][:n].tolist()):
            diagnostic = make_diagnostic(
                ProblemCode(code),
                file=self.name,
                line=line,
                column=column,
                text=self._buffer[start : min(end, start + MOST_TEXT)].tobytes(),
                unit=self._unit,
                fatal=stopped and i == n - 1,
            )
            self.diagnostics.keep(diagnostic)
        counts = state["problem_count"]
        for code in np.flatnonzero(counts).tolist():
            self.diagnostics.count(ProblemCode(code), int(counts[code]))
        counts[:] = 0
        state["problems"] = 0
        return diagnostic


def join_lines(event: Any) -> Any:
    r"""Return the joined lines of an event that is a list; return any other event unchanged.

    >>> join_lines(["shared |user tom", "|page a"])
    b'shared |user tom\n|page a'
    """
    if not isinstance(event, list | tuple):
        return event
    lines = []
    for i, line in enumerate(event):
        if not isinstance(line, str | bytes):
            raise EventTypeError(
                f"an event that is a list has its lines, each a text (str or bytes); element {i} is of type "
                f"{type(line).__name__}"
            )
        data = line.encode("utf-8", "surrogateescape") if isinstance(line, str) else line
        lines.append(data.rstrip(b"\r\n"))
    return b"\n".join(lines)
