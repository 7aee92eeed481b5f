"""OneEvent: the loop over one event at a time, with arrays that are reused from event to event.

A block of one event costs fifty times what the loop does with the event, because arrays are made, copied and
packed. An event that exceeds the capacity, and a model whose arrays have changed, are processed as a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from onlineauto.engine.loop.buffers import NO_AHEAD
from onlineauto.engine.loop.run_kernels import EventReport, Single, read_single, resume_single, run_single
from onlineauto.engine.records.loop import ROW, Results
from onlineauto.engine.records.task import Shape
from onlineauto.features.layout import most_spans
from onlineauto.features.records import NO_SLOTS, Stream
from onlineauto.formats.lines.reader_state_kernels import FEATURES, LINES, NAMES, SIZES, SPANS, WIDEST
from onlineauto.formats.mappings.mapping_reader import MappingReader
from onlineauto.jit import Bound, Sealed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from onlineauto.engine.loop.semantics import Loop
    from onlineauto.engine.loop.working_memory import Predicting
    from onlineauto.engine.records.loop import Context
    from onlineauto.engine.stream.event_readers import ReadsOne
    from onlineauto.features.layout import StreamLayout
    from onlineauto.formats.mappings.encoded_event import EncodedEvent

_BRIEF = 1024
"""Number of features up to which the loop does not release the GIL: a switch would take longer."""
_BRIEF_BYTES = 8 * _BRIEF
"""Maximum size of encoded events that are read and run in one call, which does not release the GIL either."""
_RAN, _ENDED, _PREDICTED = map(int, EventReport)  # plain numbers, which Python finds sooner
_NO_DATA = np.empty(0, np.uint8)


class OneEvent:
    """The loop, bound to a model and to the records of a reader."""

    def __init__(
        self,
        loop: Loop,
        context: Sealed[Context],
        model: Predicting,
        layout: StreamLayout,
        reader: ReadsOne,
        mode: int,
    ) -> None:
        self.model, self.records = model, reader.records
        seen = layout.seen(reader.namespaces)
        self.searches = model.parts.live.searching
        records = reader.records
        task, buffers = context.value.task, context.value.buffers
        features = (len(records.features) - 2) // 3
        stream = Stream(
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
        limit = task.n_actions if task.shape == Shape.CB else len(buffers.score)
        self.results = Results(
            rows=np.zeros(1, ROW),
            action=np.empty(limit, np.int32),
            score=np.empty(limit, np.float32),
            name=np.zeros(0, np.uint64),
            named=np.zeros(1, bool),
            ahead=NO_AHEAD,
        )
        self.cursor = np.zeros(4, np.int64)
        capacities = np.zeros(SIZES, np.int64)
        capacities[NAMES] = len(reader.namespaces)
        capacities[LINES], capacities[SPANS] = limit, most_spans(len(context.value.scratch.groups))
        capacities[FEATURES] = features
        capacities[WIDEST] = _widest(layout, min(len(buffers.cell), layout.max_crossed // limit))
        sealed = context, Sealed(stream), Sealed(self.results)
        self._reader = reader if isinstance(reader, MappingReader) else None
        encoded = None if self._reader is None else self._reader.encoded()
        event = Single(
            loop=cast("Any", loop).address(*sealed, self.cursor, 1, mode),
            mode=mode,
            read=0 if encoded is None else encoded.kernel,
            data=_NO_DATA if encoded is None else encoded.data,
            sizes=reader.sizes,
            most=capacities,
            seen=np.zeros(0, bool) if seen is None or seen.all() else seen,
            cursor=self.cursor,
            row=self.results.rows.view(np.uint64),
            prediction=np.empty(limit, np.float32),
            report=np.zeros(3, np.int64),
        )
        self._prediction, self._report = event.prediction, memoryview(event.report)  # type: ignore[arg-type]
        self._last = event.prediction  # the part that the last event filled
        self._predicted = memoryview(event.prediction)  # type: ignore[arg-type]
        self._outlier = memoryview(self.results.rows["outlier"])
        self._sizes = reader.sizes
        self._arguments = *sealed, event
        self._resume: Bound | None = None
        self._run = Bound(run_single, *self._arguments)
        self._run_brief = Bound(run_single, *self._arguments, brief=True)
        self._encoded: type[EncodedEvent] | None = None
        self._encode: Callable[[Any], bytes | None] = lambda _: None
        if encoded is not None:
            self._encoded, self._encode = encoded.of_type, encoded.encode
            self._data = memoryview(encoded.data)  # type: ignore[arg-type]
            self._most_bytes = min(encoded.most_bytes, _BRIEF_BYTES)
            # Calling the method is faster than calling the object.
            self._run_encoded, self._run_outcome = (
                Bound(
                    read_single, 0, encoded.records, *sealed, event._replace(read=read), varying=0, brief=True
                ).__call__
                for read in (encoded.kernel, encoded.outcome_kernel)
            )

    def run(self) -> bool:
        """Run the loop over the event in the records; return False, and do nothing, if that is impossible."""
        (self._run_brief if self._sizes[FEATURES] <= _BRIEF else self._run)()
        return self._report[_RAN] == 1

    def read_and_run(self, event: Any) -> bool:
        """Read and run a small ordinary mapping in one call of a kernel; return False if it was not run."""
        reader, known = self._reader, b""
        if reader is None:
            return False
        if type(event) is not self._encoded:
            data = self._encode(event)
        elif event.known and event.asked is reader.last:
            data, known = event.asked, event.known
        else:
            data = event.data
        if data is None or len(data) > self._most_bytes:
            return False
        unread = known or data
        end = len(unread)
        self._data[:end] = unread
        (self._run_outcome if known else self._run_encoded)(end)
        ran = self._report[_RAN] == 1
        reader.last = unread if ran else None
        return ran

    @property
    def ended(self) -> bool:
        """True if the loop has finished the event, so that no decision is due."""
        return self._report[_ENDED] == 1

    def resume(self) -> None:
        """Continue the event after a stop."""
        if self._resume is None:
            self._resume = Bound(resume_single, *self._arguments)
        self._resume()

    def finish(self, prediction: NDArray[np.float32]) -> None:
        """Record that the event was finished as a block, with this prediction."""
        self._prediction[: len(prediction)] = prediction
        self._report[_ENDED], self._report[_PREDICTED] = 1, len(prediction)

    @property
    def usual(self) -> bool:
        """True if no number of the event was an outlier."""
        return self._outlier[0] == 0

    def predicted(self, action: int) -> float:
        """Return the prediction of an action, 0 if the event was left out."""
        n = self._report[_PREDICTED]
        if n and not 0 <= action < n:
            raise IndexError(f"the event has {n} actions, so none has the index {action}")
        return self._predicted[action] if n else 0.0

    def prediction(self) -> NDArray[np.float32]:
        """Return the loop's prediction: float32[n_actions], by action, or float32[1]."""
        n = self._report[_PREDICTED]
        if len(self._last) != n:
            self._last = self._prediction[:n]
        return self._last.copy()


def one_event(
    loop: Loop,
    context: Sealed[Context] | None,
    model: Predicting,
    layout: StreamLayout,
    reader: ReadsOne,
    mode: int,
) -> OneEvent | None:
    """Return the loop, bound to a model and a reader; None if events need blocks."""
    if context is None or layout.seen(reader.namespaces) is None or layout.grams or layout.lags:
        return None
    task = model.parts.task
    if task.slots or (task.exploration.samples and task.exploration.active):
        return None
    return OneEvent(loop, context, model, layout, reader, int(mode))


def _widest(layout: StreamLayout, capacity: int) -> int:
    """Return the number of own features of an action up to which all products surely fit into `capacity`."""
    few, many = 0, capacity
    while few < many:
        share = (few + many + 1) // 2
        if layout.most_features(share) <= capacity:
            few = share
        else:
            many = share - 1
    return few - 2  # the constant, and a slot's index feature
