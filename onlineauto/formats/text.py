"""Read VW text, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlineauto.errors import InputError, ParseError
from onlineauto.features.block import Block
from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.namespaces import DEFAULT, Namespaces
from onlineauto.formats._kernels import DONE, GROW, STOPPED, count_marks, find_cut, read_lines, start_chunk
from onlineauto.formats.code_kernels import Code
from onlineauto.formats.column_kernels import (
    COSTS,
    DEFAULT_NUMBER,
    EVENTS,
    FEATURES,
    LINE_NUMBER,
    LINES,
    N_COUNTERS,
    N_FRESH,
    N_NAMES,
    N_PROBLEMS,
    SPANS,
    TAG_BYTES,
    Columns,
    Names,
    Problems,
    Reader,
    Rules,
)
from onlineauto.formats.diagnostics import Diagnostic, Diagnostics, make_diagnostic
from onlineauto.formats.name_kernels import insert
from onlineauto.formats.source import ByteSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from onlineauto.formats.source import Source

__all__ = ["TextReader"]

_KEPT_PROBLEMS = 128
_FIRST_TABLE = 1024

_SIZED_BY: dict[str, int] = {
    "event_start": EVENTS,
    "line_number": LINES,
    "line_start": LINES,
    "shared": LINES,
    "label": LINES,
    "weight": LINES,
    "initial": LINES,
    "cost_start": LINES,
    "cost_action": COSTS,
    "cost": COSTS,
    "probability": COSTS,
    "tag_start": LINES,
    "tag": TAG_BYTES,
    "span_namespace": SPANS,
    "span_start": SPANS,
    "hash": FEATURES,
    "value": FEATURES,
}
_TYPES: dict[str, type[np.generic]] = {
    "shared": np.bool_,
    "label": np.float32,
    "weight": np.float32,
    "initial": np.float32,
    "cost_action": np.uint32,
    "cost": np.float32,
    "probability": np.float32,
    "tag": np.uint8,
    "span_namespace": np.int32,
    "hash": np.uint32,
    "value": np.float32,
}


class TextReader:
    """Blocks of the events of a VW text; iterate once.

    Memory does not grow with the text, except for the names of namespaces and an event larger than
    `block_bytes`. From a pipe, events come as soon as they are complete.

    Parameters
    ----------
    source : path, bytes, binary file or None
        ``"-"`` and None are standard input; gzip is found out.
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
    >>> text = b"shared |user tom\\n0:-1:0.5 |item politics:2\\n|item sports\\n\\n"
    >>> for block in TextReader(text, label="cb", multiline=True):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost)
    1 3 [b'user', b'item'] [1. 2. 1.] [-1.]
    """

    def __init__(
        self,
        source: Source,
        *,
        label: Literal["simple", "cb"] = "simple",
        multiline: bool,
        exact: bool = False,
        hash_all: bool = False,
        hash_seed: int = 0,
        strict: bool = False,
        block_bytes: int = 1 << 20,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        self.namespaces = Namespaces()
        self.diagnostics = Diagnostics() if diagnostics is None else diagnostics
        self._bytes = ByteSource(source, name=name)
        self.name = self._bytes.name
        self._unit = "event" if multiline else "line"
        self._rules = Rules(
            simple=label == "simple",
            multiline=multiline,
            exact=exact,
            hash_all=hash_all,
            strict=strict,
            hash_seed=np.uint32(hash_seed),
            default_hash=_default_hash(hash_seed),
        )
        self._buffer = np.empty(block_bytes, np.uint8)
        at = np.zeros(N_COUNTERS, np.int64)
        at[DEFAULT_NUMBER] = -1
        self._reader = Reader(_make_columns(0, 0, 0, 0), _make_names(_FIRST_TABLE, 0), _make_problems(), at)

    def __iter__(self) -> Iterator[Block]:
        """Yield blocks of one or more complete events."""
        try:
            yield from self._read_blocks()
        finally:
            self._bytes.close()

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
        line = int(self._reader.at[LINE_NUMBER]) + 1
        return InputError(f"{self.name}:{line}: {error}; everything before this line was used")

    def _parse(self, end: int) -> Iterator[Block]:
        """Yield the events of the buffer's first `end` bytes."""
        self._make_room(end)
        start_chunk(self._reader)
        reason, p = GROW, 0
        while reason == GROW:
            reason, p = read_lines(self._buffer, p, end, self._rules, self._reader)
            self._collect_names()
            if reason == GROW:
                self._grow_names(end)
        last = self._collect_problems(stopped=reason == STOPPED)
        if self._reader.at[EVENTS]:
            yield self._make_block()
        if reason != DONE:
            assert last is not None
            raise ParseError(str(last), line=last.line, column=last.column)

    def _make_room(self, end: int) -> None:
        blanks, bars, newlines = count_marks(self._buffer, end)
        lines, columns = newlines + 1, self._reader.columns
        sizes = {LINES: lines, COSTS: blanks + lines, SPANS: bars, FEATURES: blanks, TAG_BYTES: end}
        sizes[EVENTS] = lines
        made = {}
        for name, counter in _SIZED_BY.items():
            need = sizes[counter] + 1
            column = getattr(columns, name)
            if len(column) < need:
                made[name] = np.empty(need + need // 4, column.dtype)
        names = self._reader.names
        if len(names.fresh_start) < bars + 1:
            fresh = np.empty(bars + bars // 4 + 1, np.int64)
            names = names._replace(fresh_start=fresh, fresh_end=fresh.copy())
        self._reader = self._reader._replace(columns=columns._replace(**made), names=names)

    def _collect_names(self) -> None:
        """Take up the names that the kernel met for the first time."""
        at, names = self._reader.at, self._reader.names
        first = int(at[N_NAMES] - at[N_FRESH])
        for i in range(int(at[N_FRESH])):
            start, end = int(names.fresh_start[i]), int(names.fresh_end[i])
            name = DEFAULT if start < 0 else self._buffer[start:end].tobytes()
            self.namespaces.add(name, int(names.hash[first + i]))
        at[N_FRESH] = 0

    def _grow_names(self, end: int) -> None:
        """Give the table of names room for all that the line to come may bring."""
        old, at = self._reader.names, self._reader.at
        new = _make_names(2 * len(old.key), len(old.fresh_start))
        insert(old, new, int(at[N_NAMES]))
        self._reader = self._reader._replace(names=new)

    def _collect_problems(self, *, stopped: bool) -> Diagnostic | None:
        """Pass on what the kernel found wrong; return the last of it."""
        problems, at = self._reader.problems, self._reader.at
        diagnostic = None
        n = int(at[N_PROBLEMS])
        for i in range(n):
            start, end = int(problems.start[i]), int(problems.end[i])
            diagnostic = make_diagnostic(
                Code(int(problems.code[i])),
                file=self.name,
                line=int(problems.line[i]),
                column=int(problems.column[i]),
                text=self._buffer[start:end].tobytes(),
                unit=self._unit,
                fatal=stopped and i == n - 1,
            )
            self.diagnostics.keep(diagnostic)
        for code in np.flatnonzero(problems.count):
            self.diagnostics.count(Code(int(code)), int(problems.count[code]))
        problems.count[:] = 0
        at[N_PROBLEMS] = 0
        return diagnostic

    def _make_block(self) -> Block:
        at, columns = self._reader.at, self._reader.columns
        cut = {}
        for name, counter in _SIZED_BY.items():
            n = int(at[counter]) + name.endswith("_start")
            cut[name] = getattr(columns, name)[:n].copy()
        return Block(namespaces=self.namespaces, **cut)


def _default_hash(hash_seed: int) -> np.uint32:
    """Hash of the namespace without a name."""
    if hash_seed == 0:
        return np.uint32(0)
    return np.uint32(murmur3(np.empty(0, np.uint8), 0, 0, np.uint32(hash_seed)))


def _make_columns(lines: int, costs: int, spans: int, features: int) -> Columns:
    sizes = {EVENTS: lines, LINES: lines, COSTS: costs, SPANS: spans, FEATURES: features, TAG_BYTES: 0}
    return Columns(
        **{name: np.empty(sizes[counter], _TYPES.get(name, np.int64)) for name, counter in _SIZED_BY.items()}
    )


def _make_names(size: int, fresh: int) -> Names:
    return Names(
        key=np.zeros(size, np.uint64),
        number=np.zeros(size, np.int32),
        hash=np.zeros(size // 2, np.uint32),
        fresh_start=np.empty(fresh, np.int64),
        fresh_end=np.empty(fresh, np.int64),
    )


def _make_problems() -> Problems:
    places = [np.zeros(_KEPT_PROBLEMS, np.int64) for _ in range(5)]
    return Problems(np.zeros(len(Code), np.int64), *places)
