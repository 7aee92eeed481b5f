"""Read VW text, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlineauto.errors import InputError, ParseError
from onlineauto.features.block import Block
from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.namespaces import DEFAULT, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats._kernels import read_lines
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.diagnostics import MOST_TEXT, Diagnostic, Diagnostics, make_diagnostic
from onlineauto.formats.line_kernels import DONE, GROW, STOPPED, find_cut
from onlineauto.formats.mark_kernels import bitmap_size, find_marks
from onlineauto.formats.name_kernels import insert
from onlineauto.formats.reading_kernels import NAME, STATE, Reader, Rules
from onlineauto.formats.source import opened
from onlineauto.formats.vw_kernels import read_vw_lines

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from onlineauto.features.records import Records
    from onlineauto.formats.source import ByteSource, Source

__all__ = ["TextReader"]

_FIRST_TABLE = 1024


class TextReader:
    r"""Blocks of the events of a VW text; iterate once.

    Memory does not grow with the text, except for the names of namespaces and an event larger than
    `block_bytes`. From a pipe, events come as soon as they are complete.

    Parameters
    ----------
    source : path, bytes, binary file, None or ByteSource
        ``"-"`` and None are standard input; gzip and zstd are found out.
    label : {"simple", "cb"}
        ``label [weight [initial]]``, or ``action:cost:probability`` and ``shared``.
    multiline : bool
        Whether empty lines separate events; else every line is one.
    exact : bool
        Read as VW 9.11.9 does, oddities and warnings included. Else a bad line is skipped, in multi-line
        input with the whole of its event, and reported.
    hash_all : bool
        ``--hash all``: names of digits only are hashed as any other.
    hash_seed : int
        ``--hash_seed``, a uint32.
    strict : bool
        ``--strict_parse``: the first bad line is an error.
    uniform : bool
        ``--missing_probability uniform``: a label without a probability is read as one with 0; not if
        `exact`.
    block_bytes : int
        Bytes to read at once.
    diagnostics : Diagnostics, optional
        Where to count problems; a new one by default.
    name : str, optional
        Name of the source in messages.

    Attributes
    ----------
    namespaces : Namespaces
        Names met so far, shared by all blocks.
    diagnostics : Diagnostics
        Problems met so far.
    name : str
        Name of the source in messages.

    Raises
    ------
    InputError
        The source cannot be opened; or, from the iteration and after everything before was yielded,
        cannot be read further.
    ParseError
        From the iteration, after everything before was yielded: a bad line if `strict`; with `exact`, a
        label that is fatal to VW.

    Source
    ------
    VW's input format; 9.11.9's ``parse_example_text.cc`` for `exact`.

    Examples
    --------
    >>> text = b"shared |user tom\n0:-1:0.5 |item politics:2\n|item sports\n\n"
    >>> for block in TextReader(text, label="cb", multiline=True):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost)
    1 3 [b'user', b'item'] [1. 2. 1.] [-1.]
    """

    def __init__(
        self,
        source: Source | ByteSource,
        *,
        label: Literal["simple", "cb"] = "simple",
        multiline: bool,
        exact: bool = False,
        hash_all: bool = False,
        hash_seed: int = 0,
        strict: bool = False,
        uniform: bool = False,
        block_bytes: int = 1 << 18,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        self.namespaces = Namespaces()
        self.diagnostics = Diagnostics() if diagnostics is None else diagnostics
        self._bytes = opened(source, name=name)
        self.name = self._bytes.name
        self._unit = "event" if multiline else "line"
        self._rules = Rules(
            simple=label == "simple",
            multiline=multiline,
            exact=exact,
            hash_all=hash_all,
            strict=strict,
            uniform=uniform,
            hash_seed=np.uint32(hash_seed),
            default_hash=_default_hash(hash_seed),
        )
        self._buffer = np.empty(block_bytes, np.uint8)
        self._reader = _make_reader()
        self._state = self._reader.state[0]

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of one or more complete events."""
        return self.blocks()

    def blocks(self) -> Generator[Block]:
        """Yield the same; to be closed, if it is not gone through to the end."""
        try:
            yield from self._read_blocks()
        finally:
            self._bytes.close()

    def parse(self, text: bytes) -> list[Block]:
        """Read a text of its own, besides the source; its namespaces are numbered with those met before.

        Only `diagnostics` begin anew with it.
        """
        self.diagnostics = Diagnostics()
        self._state["line_number"], self._state["fatal"] = 0, False
        if len(text) > len(self._buffer):
            self._buffer = np.empty(2 * len(text), np.uint8)
        self._buffer[: len(text)] = np.frombuffer(text, np.uint8)
        return list(self._parse(len(text)))

    def _read_blocks(self) -> Iterator[Block]:
        filled, known = 0, 0
        failure: InputError | None = None
        while True:
            if filled == len(self._buffer):
                self._buffer = np.concatenate([self._buffer, np.empty_like(self._buffer)])
            try:
                more = self._bytes.read(len(self._buffer) - filled)
            except InputError as error:
                failure = self._locate(error)
                break
            if not more:
                break
            self._buffer[filled : filled + len(more)] = np.frombuffer(more, np.uint8)
            known, filled = filled, filled + len(more)
            cut = find_cut(self._buffer, known, filled, self._rules.multiline, self._rules.exact)
            if cut:
                yield from self._parse(cut)
                self._buffer[: filled - cut] = self._buffer[cut:filled].copy()
                filled -= cut
        if failure is not None:
            raise failure
        yield from self._parse(filled)

    def _locate(self, error: InputError) -> InputError:
        line = int(self._state["line_number"]) + 1
        return InputError(f"{self.name}:{line}: {error}; everything before this line was used")

    def _parse(self, end: int) -> Iterator[Block]:
        """Yield the events of the buffer's first `end` bytes."""
        self._make_room(end)
        read = read_vw_lines if self._rules.exact else read_lines
        reason, p = GROW, 0
        while reason == GROW:
            reason, p = read(self._buffer, p, end, self._rules, self._reader)
            self._collect_names()
            if reason == GROW:
                self._grow_names()
        last = self._collect_problems(stopped=reason == STOPPED)
        if self._state["events"]:
            yield self._make_block()
        if reason != DONE:
            assert last is not None
            raise ParseError(str(last), line=last.line, column=last.column)

    def _make_room(self, end: int) -> None:
        """Find the text's marks, and make the records as many as it may need."""
        if len(self._reader.marks) < bitmap_size(end):
            marks, breaks = np.empty((2, bitmap_size(end)), np.uint8)
            self._reader = self._reader._replace(marks=marks, breaks=breaks)
        blanks, bars, newlines = find_marks(self._buffer, end, self._reader.marks, self._reader.breaks)
        lines = newlines + 1
        need = {"events": lines, "lines": lines, "spans": bars, "features": blanks, "costs": blanks + lines}
        need["tag"] = end
        larger = {}
        for name, size in need.items():
            records = getattr(self._reader, name)
            if len(records) < size + 1:
                larger[name] = np.empty(size + size // 4 + 1, records.dtype)
        self._reader = self._reader._replace(**larger)

    def _collect_names(self) -> None:
        """Take up the names that the kernel met for the first time."""
        names, known = self._reader.names, len(self.namespaces)
        if known == self._state["names"]:
            return
        fresh = names[names["number"] >= known]
        found = [
            (number, self._buffer[start:end].tobytes(), hash_)
            for _, start, end, number, hash_ in fresh.tolist()
        ]
        if self._state["default_name"] >= known:
            found.append((int(self._state["default_name"]), DEFAULT, int(self._rules.default_hash)))
        for _, name, hash_ in sorted(found):
            self.namespaces.add(name, hash_)

    def _grow_names(self) -> None:
        """Give the table of names twice the room."""
        names = _make_names(2 * len(self._reader.names))
        insert(self._reader.names, names)
        self._reader = self._reader._replace(names=names)

    def _collect_problems(self, *, stopped: bool) -> Diagnostic | None:
        """Pass on what the kernel found wrong; return the last of it."""
        state, diagnostic = self._state, None
        n = int(state["problems"])
        for i, (code, line, column, start, end) in enumerate(state["problem"][:n].tolist()):
            diagnostic = make_diagnostic(
                Code(code),
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
            self.diagnostics.count(Code(code), int(counts[code]))
        counts[:] = 0
        state["problems"] = 0
        return diagnostic

    def _make_block(self) -> Block:
        """Copy the records of the events."""
        reader, state = self._reader, self._state
        return Block(
            event_start=reader.events[: state["events"] + 1].copy(),
            lines=_copied(reader.lines, state["lines"] + 1),
            costs=_copied(reader.costs, state["costs"]),
            spans=_copied(reader.spans, state["spans"] + 1),
            features=_copied(reader.features, state["features"]),
            tag=reader.tag[: state["tag_bytes"]].copy(),
            namespaces=self.namespaces,
        )


def _copied(records: Records, n: int) -> Records:
    """The first `n` records, copied byte by byte: NumPy would go through their fields."""
    copied = np.empty(n, records.dtype)
    copied.view(np.uint8)[:] = records[:n].view(np.uint8)
    return copied


def _default_hash(hash_seed: int) -> np.uint32:
    """Hash of the namespace without a name."""
    if hash_seed == 0:
        return np.uint32(0)
    return np.uint32(murmur3(np.empty(0, np.uint8), 0, 0, np.uint32(hash_seed)))


def _make_reader() -> Reader:
    """Records for a text that has not begun."""
    state = np.zeros(1, STATE)
    state["default_name"] = -1
    return Reader(
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
