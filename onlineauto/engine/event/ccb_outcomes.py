"""Outcomes of slots, summed by event like VW's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.records.loop import ROW
from onlineauto.features.block import UNLABELLED

if TYPE_CHECKING:
    from onlineauto.features.slots import Slots

_SHOWN = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EventOutcomes(Outcomes):
    """Outcomes of events that have slots.

    An event is labelled if any of its slots is. Its loss is the loss of its first slot, or the sum over all
    its slots.
    """

    by_slot: Outcomes  # Outcomes of the slots.

    def short_repr(self, event: int) -> tuple[str, str]:
        """Return label and prediction for the progress table.

        The label lists the logged actions of the first two slots, the prediction the chosen actions of all
        slots.
        """
        slots, first = self.by_slot, 0
        assert slots.slots is not None
        first, last = slots.slots.start[event : event + 2].tolist()
        labels = [
            f"{slots.known_action[slot]}:{_format_general(slots.known_cost[slot])}"
            if slots.labelled[slot]
            else "?"
            for slot in range(first, last)
        ]
        if len(labels) > _SHOWN:
            labels[_SHOWN:] = ["..."]
        start = slots.action_start
        chosen = [
            str(slots.action[start[slot]]) if start[slot] < start[slot + 1] else "None"
            for slot in range(first, last)
        ]
        return ",".join(labels), ",".join(chosen)


def of_events(outcomes: Outcomes, slots: Slots, *, all_slots: bool) -> EventOutcomes:
    """Return the outcomes of events, summed over the outcomes of their slots."""
    n = len(slots.start) - 1
    rows = np.zeros(n, ROW)
    rows["known_action"], rows["known_cost"] = -1, UNLABELLED
    holdout = np.zeros(n, bool)
    holdout[slots.event] = outcomes.holdout
    for number in range(int(slots.number.max(initial=-1)) + 1):  # The order of float32 sums matters.
        chosen = slots.number == number
        event = slots.event[chosen]
        if number == 0 or all_slots:
            rows["loss"][event] += outcomes.loss[chosen]
        rows["labelled"][event] |= outcomes.labelled[chosen]
        rows["n_features"][event] += outcomes.n_features[chosen]
        rows["shown_features"][event] += outcomes.shown_features[chosen]
    return EventOutcomes(
        rows=rows,
        line=slots.event_start[:-1],
        weight=slots.event_weight,
        holdout=holdout,
        label=np.full(n, UNLABELLED),
        action=np.empty(0, np.int32),
        score=np.empty(0, np.float32),
        by_slot=outcomes,
    )


def _format_general(value: np.float32) -> str:
    """Return a float32 as text with six significant digits, in the format of a C++ stream."""
    return f"{float(value):g}"
