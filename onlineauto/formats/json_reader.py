"""Read VW's JSON and decision-service logs, block by block."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.records import FEATURE
from onlineauto.formats.json.line_kernels import read_json_lines
from onlineauto.formats.json.mark_kernels import find_json_marks
from onlineauto.formats.lines.json_state_kernels import EVENT, FRAME, LOG, STAGED, JsonRules, Stage
from onlineauto.formats.lines.line_reader import LineReader
from onlineauto.formats.lines.log_counts import LogCounts, SlotLogCounts
from onlineauto.formats.lines.reader_state_kernels import STATE
from onlineauto.formats.quirks import NO_QUIRKS

if TYPE_CHECKING:
    from onlineauto.formats.lines.diagnostics import Diagnostics
    from onlineauto.formats.quirks import ReadingQuirks
    from onlineauto.formats.sources.source import ByteSource, Source

__all__ = ["JsonReader"]

_DEPTH = 256
_OVERRUN = 64  # brackets are counted that many bytes at a time, strings copied eight


class JsonReader(LineReader):
    r"""Blocks of the events of a JSON text, one a line; iterate once.

    Objects are namespaces, their members features: a number is a value, a string is part of the name, true
    is 1. ``_multi`` has the actions; ``_label_cost``, ``_label_probability`` and ``_labelIndex`` or
    ``_label_Action`` say what was logged.

    Parameters
    ----------
    source : path, bytes, binary file, None or ByteSource
        ``"-"`` and None are standard input; gzip and zstd are found out.
    log : bool
        Whether the lines are those of a decision-service log, with the context in ``c``, and not contexts.
    label : {"simple", "cb", "ccb"}
        Whether labels are numbers or costs of actions.
    multiline : bool
        Whether an event has actions, in ``_multi``; else it is a single line.
    quirks : ReadingQuirks
        Oddities of VW to follow; none by default.
    chain_hash : bool
        ``--chain_hash``: hash a string with its key's hash as the seed, and not both put together.
    hash_all, hash_seed, strict, uniform, block_bytes, diagnostics, name
        As of `TextReader`.

    Attributes
    ----------
    counts : LogCounts or SlotLogCounts
        What the log had in it so far; the diagnostics of a log have them too.

    Raises
    ------
    InputError
        The source cannot be opened; or, from the iteration and after everything before was yielded,
        cannot be read further.
    ParseError
        From the iteration, after everything before was yielded: a bad line if `strict`; others are
        reported and skipped.

    Source
    ------
    VW's JSON and DSJSON (``parse_example_json.cc``). Not read: ``__aid``.

    Examples
    --------
    >>> text = b'{"c": {"User": {"age": 30}, "_multi": [{"A": {"x": "y"}}, {}]}, "_label_cost": 1, '
    >>> text += b'"_label_probability": 0.5, "_labelIndex": 1, "a": [2, 1]}'
    >>> for block in JsonReader(text, log=True, label="cb", multiline=True):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost_start)
    1 3 [b' ', b'User', b'A'] [30.  1.] [0 0 0 1]
    """

    def __init__(
        self,
        source: Source | ByteSource,
        *,
        log: bool,
        label: Literal["simple", "cb", "ccb"] = "simple",
        multiline: bool,
        quirks: ReadingQuirks = NO_QUIRKS,
        chain_hash: bool = False,
        hash_all: bool = False,
        hash_seed: int = 0,
        strict: bool = False,
        uniform: bool = False,
        block_bytes: int = 1 << 18,
        diagnostics: Diagnostics | None = None,
        name: str | None = None,
    ) -> None:
        rules = JsonRules(
            simple=label == "simple",
            slots=label == "ccb",
            multiline=multiline,
            quirks=quirks,
            hash_all=hash_all,
            strict=strict,
            uniform=uniform,
            hash_seed=np.uint32(hash_seed),
            default_hash=_default_hash(hash_seed, hash_all=hash_all),
            log=log,
            chain_hash=chain_hash,
        )
        super().__init__(
            source, rules=rules, unit="line", block_bytes=block_bytes, diagnostics=diagnostics, name=name
        )
        fresh = SlotLogCounts() if rules.slots else LogCounts()
        self.counts = self.diagnostics.log or fresh  # of all files of a run together
        if log:
            self.diagnostics.log = self.counts
        self._json_rules = rules
        self._stage = _make_stage()
        self._count_on()

    def _size_for(self, text_bytes: int) -> int:
        return 3 * text_bytes + _OVERRUN

    def _make_room(self, end: int) -> None:
        """Find the marks, and make room for the shortest records that can fill the text."""
        self._make_bitmaps(end)
        stage = self._stage
        stage.event["scratch"] = self._text_bytes
        features, lines = end // 2 + 1, end // 3 + 2
        if len(stage.features) < features:
            more = features + features // 4
            self._stage = stage = stage._replace(
                lines=np.empty(more, STAGED["lines"]),
                groups=np.empty(more, STAGED["groups"]),
                segments=np.empty(more, STAGED["segments"]),
                features=np.empty(more, FEATURE),
                costs=np.empty(more, STAGED["costs"]),
                odd=np.empty(len(self._reader.marks), np.uint8),
            )
        if len(stage.odd) < len(self._reader.marks):
            self._stage = stage = stage._replace(odd=np.empty(len(self._reader.marks), np.uint8))
        self._make_records(
            events=lines,
            lines=lines,
            spans=features,
            features=features,
            costs=features + lines,
            tag=end,
        )
        find_json_marks(self._buffer, end, self._reader.marks, self._reader.breaks, stage.odd)

    def _read(self, p: int, end: int) -> tuple[int, int]:
        result = read_json_lines(self._buffer, p, end, self._json_rules, self._reader, self._stage)
        self._count()
        return result

    def _count_on(self) -> None:
        """Let the kernel count on from what the files before had in them."""
        log = self._stage.log[0]
        for name in LOG.names or ():
            log[name] = getattr(self.counts, f"dsjson_{name}", getattr(self.counts, name, log[name]))
        log["has_first_id"] = bool(self.counts.first_event_id)
        log["has_first_time"] = bool(self.counts.first_event_time)

    def _count(self) -> None:
        """Take up what the kernel counted."""
        counts, log = self.counts, self._stage.log[0]
        if self._json_rules.log:
            self.diagnostics.log = counts
        for field in fields(counts):
            name = field.name.removeprefix("dsjson_")
            if name in (LOG.names or ()):
                setattr(counts, field.name, log[name].item())
        for bounds, name in (
            ("first_id", "first_event_id"),
            ("last_id", "last_event_id"),
            ("first_time", "first_event_time"),
            ("last_time", "last_event_time"),
        ):
            start, end = log[bounds].tolist()
            if end > start:
                setattr(counts, name, _decoded(self._buffer[start:end].tobytes()))
                log[bounds] = 0


def _decoded(string: bytes) -> str:
    """Text of a JSON string, whatever its bytes."""
    try:
        return msgspec.json.decode(string, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return string[1:-1].decode("utf-8", "replace")


def _default_hash(hash_seed: int, *, hash_all: bool) -> np.uint32:
    """Hash of the namespace without a name, which is a blank in JSON."""
    if not hash_all:
        return np.uint32(hash_seed)
    return np.uint32(murmur3(np.frombuffer(b" ", np.uint8), 0, 1, np.uint32(hash_seed)))


def _make_stage() -> Stage:
    """Records for an event that has not begun, of which only the few that are always there have room."""
    staged: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in STAGED.items()}
    return Stage(
        event=np.zeros(1, EVENT),
        log=np.zeros(1, LOG),
        frames=np.empty(_DEPTH, FRAME),
        features=np.empty(0, FEATURE),
        quiet=np.zeros(1, STATE),
        odd=np.empty(0, np.uint8),
        **staged,
    )
