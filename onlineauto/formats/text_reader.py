"""Read VW text, block by block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.formats.lines.line_reader import LineReader
from onlineauto.formats.lines.mark_kernels import find_marks
from onlineauto.formats.quirks import NO_QUIRKS
from onlineauto.formats.text.text_kernels import read_lines
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from onlineauto.formats.lines.reader_state_kernels import ReaderRules


class TextReader(LineReader):
    r"""Iterator over the events of a VW text, in Blocks; see `LineReader`.

    Labels are ``label [weight [initial]]``, or ``action:cost:probability`` and ``shared``. Labels of slots
    are ``ccb shared``, ``ccb action`` and ``ccb slot [action:cost:probability[,action:probability...]]
    [action,action...]``. A malformed line is skipped; in multi-line input its whole event is skipped.

    >>> from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    >>> text = b"shared |user tom\n0:-1:0.5 |item politics:2\n|item sports\n\n"
    >>> for block in TextReader(text, ReaderRules(multiline=True, simple=False)):
    ...     print(len(block), block.n_lines, block.namespaces.names, block.value, block.cost)
    1 3 [b'user', b'item'] [1. 2. 1.] [-1.]
    """

    quirks = NO_QUIRKS
    _read_lines = staticmethod(read_lines)
    """The reading kernel."""

    @property
    def _unit(self) -> Literal["line", "event"]:
        return "event" if self._rules.multiline else "line"

    def _complete(self, rules: ReaderRules) -> ReaderRules:
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

    def _bind(self, most_bytes: int) -> tuple[Bound, Bound]:
        self._make_bitmaps(most_bytes)
        self._make_records(
            events=most_bytes,
            lines=most_bytes + 1,
            spans=most_bytes,
            features=3 * most_bytes + 2,
            costs=2 * most_bytes,
            tag=most_bytes,
        )
        reader = self.records
        return (
            Bound(find_marks, self._buffer, 0, reader.marks, reader.breaks, varying=1, brief=True),
            Bound(self._read_lines, self._buffer, 0, 0, reader, varying=2, brief=True),
        )
