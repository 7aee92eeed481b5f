"""RecordReader: the base class of readers, with the records that kernels fill and the names of namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.block import DEFAULT, Block, Namespaces
from onlineauto.features.records import COST, FEATURE, LINE, SPAN
from onlineauto.formats.records.reader_state_kernels import NAME, RULES, SIZES, STATE, Reader, insert

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Rules as BlockRules
    from onlineauto.features.records import Records
    from onlineauto.formats.records.reader_state_kernels import ReaderRules

_FIRST_TABLE = 1024


class RecordReader:
    """Owns the records that kernels fill from a buffer of text, and makes blocks of them."""

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
