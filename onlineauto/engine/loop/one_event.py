"""OneEvent: the loop over one event at a time, with arrays that are kept from event to event.

A block of one event costs fifty times what the loop does with it: for arrays that are made, copied and
packed. Here the loop is bound once to the records in which a reader leaves its events. An event that needs
more room, or a model that has changed its arrays since, takes the way of the blocks, which makes both anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.state import CB, ROW, SIMPLE, Results
from onlineauto.features.layout import most_spans
from onlineauto.features.records import CONSTANT, NO_SLOTS, Stream
from onlineauto.jit import Bound

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Context
    from onlineauto.engine.loop.semantics import Loop
    from onlineauto.features.layout import Layout
    from onlineauto.formats.records.reader_state_kernels import Reader
    from onlineauto.formats.records.record_reader import InPlace
    from onlineauto.jit import Sealed

__all__ = ["OneEvent", "one_event"]


class OneEvent:
    """The loop, bound to a context and to the records of a reader.

    Parameters
    ----------
    loop : callable
        The loop over events.
    context : Sealed[Context]
        What the loop works with.
    records : Reader
        Where a reader leaves its events.
    layout : Layout
        The layout of the context.
    standing : int
        `STREAM` or `ASIDE`.

    Attributes
    ----------
    context, records : Sealed[Context], Reader
        The same.
    stream, results, cursor : Stream, Results, int64[4]
        What the loop is given.
    """

    __slots__ = (
        "_is_simple",
        "_loop",
        "_n_actions",
        "_room",
        "_row",
        "_words",
        "context",
        "cursor",
        "records",
        "results",
        "stream",
    )

    def __init__(
        self, loop: Loop, context: Sealed[Context], records: Reader, layout: Layout, standing: int
    ) -> None:
        self.context, self.records = context, records
        task, buffers = context.value.task, context.value.buffers
        features = (len(records.features) - 2) // 3
        self.stream = Stream(
            events=records.events[:2],
            holdout=np.zeros(1, bool),
            lines=records.lines,
            costs=records.costs,
            spans=records.spans,
            features=records.features,
            constant=features,
            room=features + 1,
            slots=NO_SLOTS,
        )
        most = task.n_actions if task.shape == CB else len(buffers.score)
        self.results = Results(
            rows=np.zeros(1, ROW),
            action=np.empty(most, np.int32),
            score=np.empty(most, np.float32),
            name=np.zeros(0, np.uint64),
            named=np.zeros(1, bool),
        )
        self._words = records.features.view(np.uint64)
        self._row = self.results.rows.view(np.uint8)
        self._n_actions = self.results.rows["n_actions"]
        self._is_simple = task.shape == SIMPLE
        self.cursor = np.zeros(4, np.int64)
        spans = most_spans(len(context.value.scratch.groups))
        self._room = most, spans, features, _widest(layout, len(buffers.cell))
        self._loop = Bound(loop, context.record, self.stream, self.results, self.cursor, 1, standing)

    def run(self, found: InPlace) -> bool:
        """Run the loop over the event in the records; return False, and do nothing, if it needs more room."""
        lines, spans, features, widest = self._room
        if found.lines > lines or found.spans > spans or found.features > features or found.widest > widest:
            return False
        self._words[self.stream.constant] = CONSTANT  # a longer text may have been there
        self._row[:] = 0
        self.cursor[:] = 0
        self._loop()
        return True

    def prediction(self) -> NDArray[np.float32]:
        """Return what the loop has predicted: float32[n_actions], by action, or float32[1]."""
        row, action, score, _, _ = self.results
        if self._is_simple:
            return row["prediction"].copy()  # type: ignore[no-any-return]
        n = self._n_actions[0]
        scores = np.empty(n, np.float32)
        scores[action[:n]] = score[:n]
        return scores


def one_event(
    last: OneEvent | None,
    loop: Loop,
    context: Sealed[Context],
    records: Reader,
    layout: Layout,
    standing: int,
) -> OneEvent | None:
    """Return the last one if it is bound to this context and these records, else a new one; see `OneEvent`.

    Returns None if the events of the task cannot be run so: they have slots, or draw names.
    """
    if last is not None and last.context is context and last.records is records:
        return last
    task = context.value.task
    if task.slots or (task.exploration.samples and task.exploration.active):
        return None
    return OneEvent(loop, context, records, layout, standing)


def _widest(layout: Layout, room: int) -> int:
    """Return the number of own features of an action with which all its products surely fit into a room."""
    few, many = 0, room
    while few < many:
        own = (few + many + 1) // 2
        if layout.most_features(own) <= room:
            few = own
        else:
            many = own - 1
    return few - 2  # the constant, and a slot's index feature
