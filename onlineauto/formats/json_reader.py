"""Read VW's JSON and decision-service logs, block by block."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.records import FEATURE
from onlineauto.formats.json.json_kernels import read_json_lines
from onlineauto.formats.json.stage_kernels import EVENT, FRAME, LOG, STAGED, Stage
from onlineauto.formats.lines.diagnostics import LogCounts, SlotLogCounts
from onlineauto.formats.lines.line_reader import LineReader, join_lines
from onlineauto.formats.lines.mark_kernels import find_json_marks
from onlineauto.formats.lines.reader_state_kernels import STATE
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from onlineauto.features.block import Block, Rules
    from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    from onlineauto.formats.sources.source import ByteSource, Source


_DEPTH = 256
_OVERRUN = 64  # bytes that kernels may touch past the end: brackets are counted 64 bytes at a time


class JsonReader(LineReader):
    r"""Iterator over the events of a JSON text, one per line, in Blocks; see `LineReader`.

    Objects are namespaces and their members features: a number is the value, a string is part of the name,
    true is 1. ``_multi`` lists the actions. ``_label_cost``, ``_label_probability`` and ``_labelIndex`` or
    ``_label_Action`` are the logged cost, probability and action.

    Source: VW's JSON and DSJSON (``parse_example_json.cc``). Not read: ``__aid``.

    >>> from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    >>> text = b'{"c": {"User": {"age": 30}, "_multi": [{"A": {"x": "y"}}, {}]}, "_label_cost": 1, '
    >>> text += b'"_label_probability": 0.5, "_labelIndex": 1, "a": [2, 1]}'
    >>> for block in JsonReader(text, ReaderRules(multiline=True, simple=False, log=True)):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost_start)
    1 3 [b' ', b'User', b'A'] [30.  1.] [0 0 0 1]
    """

    def __init__(self, source: Source | ByteSource, rules: ReaderRules, **reading: Any) -> None:
        super().__init__(source, rules, **reading)
        fresh = SlotLogCounts() if rules.slots else LogCounts()
        self.counts = self.diagnostics.log or fresh  # shared by all files of a run
        if rules.log:
            self.diagnostics.log = self.counts
        self._stage = _make_stage()
        log = self._stage.log[0]
        for name in LOG.names or ():  # the kernel's counters start from the counts of the files read before
            log[name] = getattr(self.counts, f"dsjson_{name}", getattr(self.counts, name, log[name]))
        log["has_first_id"] = bool(self.counts.first_event_id)
        log["has_first_time"] = bool(self.counts.first_event_time)
        self._explicit: Any = None  # an `ExplicitNames`
        self.looks_for_names: Callable[[bytes, Rules], Rules] | None = None

    def parse(self, text: bytes) -> list[Block]:
        """Return the Blocks of a separate text; see `LineReader.parse`."""
        return super().parse(text if self._explicit is None else self._explicit.text(text))

    def read(self, text: str | bytes | Sequence[str | bytes]) -> bool:
        """Read a text of one ordinary event; see `LineReader.read`."""
        if self._explicit is not None:
            text = join_lines(text)
            data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            text = self._explicit.text(data)
        return super().read(text)

    def rewrite_by(self, explicit: Any) -> None:
        """Rewrite all lines before they are read, since their names are not those of Vowpal Wabbit."""
        self._explicit, self._bytes = explicit, explicit.bytes_of(self._bytes)

    def names_of(self, event: Any) -> Rules:
        """Return the rules of a text, with that by which its names are made, as far as it is known."""
        if self.looks_for_names is not None:
            text: Any = join_lines(event)
            data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
            self.read_by = self.looks_for_names(data, self.read_by)
        return self.read_by

    def _parse(self, end: int) -> Iterator[Block]:
        if self.looks_for_names is not None and end:
            self.names_of(self._buffer[:end].tobytes())
        yield from super()._parse(end)

    def _complete(self, rules: ReaderRules) -> ReaderRules:
        """Return the rules with the hash of the namespace without a name, which is a blank in JSON."""
        seed = np.uint32(rules.hash_seed)
        blank = np.uint32(murmur3(np.frombuffer(b" ", np.uint8), 0, 1, seed)) if rules.hash_all else seed
        return rules._replace(default_hash=blank)

    def _size_for(self, text_bytes: int) -> int:
        return 3 * text_bytes + _OVERRUN

    def _make_room(self, end: int) -> None:
        """Fill the bitmaps, and enlarge the arrays to hold the most records that the text can have."""
        self._make_stage(end)
        find_json_marks(self._buffer, end, self.records.marks, self.records.breaks, self._stage.odd)

    def _make_stage(self, end: int) -> None:
        """Enlarge the bitmaps and arrays to hold the most records that a text of `end` bytes can have."""
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
                odd=np.empty(len(self.records.marks), np.uint8),
            )
        if len(stage.odd) < len(self.records.marks):
            self._stage = stage = stage._replace(odd=np.empty(len(self.records.marks), np.uint8))
        self._make_records(
            events=lines,
            lines=lines,
            spans=features,
            features=features,
            costs=features + lines,
            tag=end,
        )

    def _bind(self, most_bytes: int) -> tuple[Bound, Bound]:
        self._make_stage(most_bytes)
        reader = self.records
        stage = self._stage._replace(log=self._stage.log.copy())  # the counts of the log must not change
        return (
            Bound(
                find_json_marks,
                self._buffer,
                0,
                reader.marks,
                reader.breaks,
                stage.odd,
                varying=1,
                brief=True,
            ),
            Bound(read_json_lines, self._buffer, 0, 0, reader, stage, varying=2, brief=True),
        )

    def _read(self, p: int, end: int) -> tuple[int, int]:
        result = read_json_lines(self._buffer, p, end, self.records, self._stage)
        self._count()
        return result

    def _count(self) -> None:
        """Copy the kernel's counters to `counts`."""
        counts, log = self.counts, self._stage.log[0]
        if self._rules.log:
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
                setattr(counts, name, _decode(self._buffer[start:end].tobytes()))
                log[bounds] = 0


def _decode(string: bytes) -> str:
    """Return the text of a JSON string; malformed bytes are replaced."""
    try:
        return msgspec.json.decode(string, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return string[1:-1].decode("utf-8", "replace")


def _make_stage() -> Stage:
    """Return an empty stage; the arrays that grow with the text have no rows yet."""
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
