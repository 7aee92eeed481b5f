"""Slots: the units that the loop processes if events have several CCB slots, each of which gets an action.

The loop processes a slot like a separate event. The slot's features are those of the shared line and of the
slot; its actions are those that no earlier slot of the event has. A feature ``index0``, ``index1``, ... in a
separate namespace identifies the slot. It is added from the first event with several slots, or with a slot
that has features. Until then, the model is that of ``--cb_explore_adf``.

Source: VW ``conditional_contextual_bandit.cc``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.records import FEATURE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.layout import StreamLayout
    from onlineauto.features.records import Records

SLOT_NAME, INDEX_NAME = b"\x8b", b"\x8c"
"""Namespaces for a slot's features without a namespace, and for the feature that identifies the slot."""

_SPACE = b"_id"


class Slots(NamedTuple):
    """The slots of a block."""

    # int64[n]: line of each slot.    event : int64[n] Event of each slot.    start : int64[n_events + 1]
    # First slot of each event.
    line: NDArray[np.int64]
    event: NDArray[np.int64]
    start: NDArray[np.int64]
    event_start: NDArray[np.int64]  # int64[n_events + 1]: first line of each event.
    event_weight: NDArray[np.float32]  # float32[n_events]: importance weight of each event.
    number: NDArray[np.int64]  # int64[n]: number of each slot within its event, from 0.
    # First event whose slots have the ``index`` feature; the number of events if there is none.
    first_indexed: int
    index_features: Records  # The features that identify slots, ``index0``, ``index1``, ...

    def __len__(self) -> int:
        """Return the number of slots."""
        return len(self.line)

    def head(self, n: int) -> Slots:
        """Return the slots of the first `n` events."""
        end = int(self.start[n])
        return Slots(
            line=self.line[:end],
            event=self.event[:end],
            start=self.start[: n + 1],
            event_start=self.event_start[: n + 1],
            event_weight=self.event_weight[:n],
            number=self.number[:end],
            first_indexed=min(self.first_indexed, n),
            index_features=self.index_features,
        )

    def table(self, first_index: int) -> NDArray[np.int64]:
        """Return the slots for kernels, whose ``index`` features begin at `first_index`: int64[n, 4]."""
        shared, index = self.event_start[self.event], first_index + self.number
        index[self.event < self.first_indexed] = -1
        return np.column_stack([shared, self.line - self.number, self.line, index])

    def by_action(
        self, action_start: NDArray[np.int64], action: NDArray[np.int32], score: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the scores of the slots of a block of one event: float32[n_slots, n_actions], 0 if none."""
        n_actions = int(self.event_start[1] - self.event_start[0]) - 1 - len(self)
        scores = np.zeros((len(self), n_actions), np.float32)
        scores[np.repeat(np.arange(len(self)), np.diff(action_start)), action] = score
        return scores


def find_slots(block: Block, layout: StreamLayout, *, hash_seed: int, indexed: bool | None) -> Slots:
    """Return the slots of a block."""
    starts = block.event_start
    line = starts[0] + np.flatnonzero(block.slot[starts[0] : starts[-1]])
    event = np.searchsorted(starts, line, "right") - 1
    start = np.searchsorted(line, starts)
    number = np.arange(len(line)) - start[event]
    first_indexed = len(block) if indexed is None else 0
    if indexed is False:
        several = np.diff(start) > 1
        several[event[(number == 0) & _has_features(block, layout, line)]] = True
        first_indexed = int(several.argmax()) if several.any() else len(block)
    features = np.empty(0 if first_indexed == len(block) else int(number.max(initial=-1)) + 1, FEATURE)
    seed = np.uint32(murmur3(np.frombuffer(_SPACE, np.uint8), 0, len(_SPACE), np.uint32(hash_seed)))
    for i in range(len(features)):
        name = np.frombuffer(b"index%d" % i, np.uint8)
        features[i] = (murmur3(name, 0, len(name), seed), 1)
    weight = block.weight[starts[:-1]]
    return Slots(line, event, start, starts, weight, number, first_indexed, features)


def _has_features(block: Block, layout: StreamLayout, lines: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each line whether it has features that are not ignored: bool[]."""
    is_used = ~layout.kernel_layout.ignore[layout.kernel_layout.key[block.span_namespace]]
    before = np.concatenate([[0], np.cumsum(is_used)])
    has_features: NDArray[np.bool_] = before[block.line_start[lines + 1]] > before[block.line_start[lines]]
    return has_features
