"""Read VW text, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.formats.lines.line_kernels import DONE
from onlineauto.formats.lines.line_reader import LineReader
from onlineauto.formats.lines.mark_kernels import find_marks
from onlineauto.formats.quirks import NO_QUIRKS
from onlineauto.formats.records.size_kernels import FINE, NAMES, measure
from onlineauto.formats.text.line_kernels import read_lines
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.formats.records.reader_state_kernels import Reader, Rules

__all__ = ["TextReader"]

_MOST_IN_PLACE = 1 << 16
"""Bytes of the longest text for which room is made whatever may be in it."""


class _Bound(NamedTuple):
    """The kernels that read one event after the other, bound to the records of a reader."""

    buffer: NDArray[np.uint8]
    reader: Reader
    most_bytes: int
    view: memoryview[int]
    sizes: memoryview[int]
    mark: Bound
    read: Bound
    measure: Bound


class TextReader(LineReader):
    r"""Iterator over the events of a VW text, in Blocks; can be iterated once.

    Parameters, attributes and errors are those of `LineReader`. Labels are ``label [weight [initial]]``; or
    ``action:cost:probability`` and ``shared``; or, of slots, ``ccb`` and ``shared``, ``action`` or
    ``slot [action:cost:probability[,action:probability...]] [action,action...]``. A bad line is skipped, in
    multi-line input with its whole event.

    Source
    ------
    VW's input format.

    Examples
    --------
    >>> from onlineauto.formats.records.reader_state_kernels import Rules
    >>> text = b"shared |user tom\n0:-1:0.5 |item politics:2\n|item sports\n\n"
    >>> for block in TextReader(text, Rules(multiline=True, simple=False)):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost)
    1 3 [b'user', b'item'] [1. 2. 1.] [-1.]
    """

    quirks = NO_QUIRKS
    _read_lines = staticmethod(read_lines)
    """The kernel that reads."""
    _bound: _Bound | None = None

    @property
    def _unit(self) -> Literal["line", "event"]:
        return "event" if self._rules.multiline else "line"

    def _complete(self, rules: Rules) -> Rules:
        seed = np.uint32(rules.hash_seed)
        nothing = np.uint32(0) if seed == 0 else np.uint32(murmur3(np.empty(0, np.uint8), 0, 0, seed))
        return rules._replace(quirks=self.quirks, default_hash=nothing)

    def _size_for(self, text_bytes: int) -> int:
        return text_bytes

    def _make_room(self, end: int) -> None:
        self._make_bitmaps(end)
        blanks, bars, newlines = find_marks(self._buffer, end, self.records.marks, self.records.breaks)
        lines = newlines + 1
        lists = end // 2 if self._rules.slots else 0  # actions in comma-separated lists
        self._make_records(
            events=lines, lines=lines, spans=bars, features=blanks, costs=blanks + lines + lists, tag=end
        )

    def _read(self, p: int, end: int) -> tuple[int, int]:
        return self._read_lines(self._buffer, p, end, self.records)

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy: all but the addresses of arrays."""
        return vars(self) | {"_bound": None}

    def read(self, text: str | bytes) -> bool:
        """Read a text of one usual event into the records, and measure it; return False if it is another."""
        data = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
        end = len(data)
        bound = self._bound
        if end > min(_MOST_IN_PLACE, self._text_bytes):
            return False
        fits = bound is not None and bound.buffer is self._buffer and bound.reader is self.records
        if bound is None or not fits or end > bound.most_bytes:
            self._bound = bound = self._bind(min(2 * end, _MOST_IN_PLACE))
        bound.view[:end] = data
        state = self.records.state[0]
        state["line_number"], state["fatal"] = 0, False
        bound.mark(end)
        reason, _ = bound.read(end)
        bound.measure()
        if bound.sizes[NAMES] != len(self.namespaces):
            self._collect_names()
        if reason == DONE and bound.sizes[FINE]:
            return True
        state["problem_count"], state["problems"] = 0, 0  # `parse_one` finds them again, and tells of them
        return False

    def _bind(self, most_bytes: int) -> _Bound:
        """Return the kernels that read, bound to records with room for any text of so many bytes."""
        self._make_bitmaps(most_bytes)
        self._make_records(
            events=most_bytes,
            lines=most_bytes + 1,
            spans=most_bytes,
            features=3 * most_bytes + 2,
            costs=2 * most_bytes,
            tag=most_bytes,
        )
        reader, buffer, sizes = self.records, self._buffer, self.sizes
        return _Bound(
            buffer,
            reader,
            most_bytes,
            memoryview(buffer),  # type: ignore[arg-type]
            memoryview(sizes),  # type: ignore[arg-type]
            mark=Bound(find_marks, buffer, 0, reader.marks, reader.breaks, varying=1),
            read=Bound(self._read_lines, buffer, 0, 0, reader, varying=2),
            measure=Bound(measure, reader, sizes),
        )
