"""Locate the events that are not learnt because of an outlier, as problems of the input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.engine.records.loop import Outlier
from onlineauto.features.block import UNLABELLED
from onlineauto.formats.lines.diagnostics import ProblemCode

if TYPE_CHECKING:
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics

WHAT: Final = {
    Outlier.FAR_COST: "the label or cost",
    Outlier.FAR_WEIGHT: "the weight",
    Outlier.FAR_PROBABILITY: "the inverse of the probability",
    Outlier.FAR_VALUE: "the value of a feature",
}
"""The number that is far beyond all before, for messages, by the outlier of an event."""

BEGAN_AGAIN: Final = (
    "numbers of the first events are thousands of times beyond those since; "
    "learning began again with this event"
)
"""The message that learning restarts."""

_CODES: Final = {
    Outlier.FAR_COST: ProblemCode.LABEL_FAR_OUT,
    Outlier.FAR_WEIGHT: ProblemCode.WEIGHT_FAR_OUT,
    Outlier.FAR_PROBABILITY: ProblemCode.PROBABILITY_FAR_OUT,
    Outlier.FAR_VALUE: ProblemCode.VALUE_FAR_OUT,
    Outlier.BEGINS_AGAIN: ProblemCode.BEGAN_AGAIN,
}


def locate_outliers(block: Block, outcomes: Outcomes, problems: Diagnostics) -> None:
    """Add the events of a block that were not learnt because of an outlier to the problems, each once."""
    last = -1
    for row in np.flatnonzero(outcomes.outlier).tolist():
        event = row if outcomes.slots is None else int(outcomes.slots.event[row])
        if event != last:
            add_outlier(block, event, int(outcomes.outlier[row]), problems)
        last = event


def add_outlier(
    block: Block, event: int, outlier: int, problems: Diagnostics, *, number: float | None = None
) -> None:
    """Add an event that was not learnt to the problems of a block; `number` is the outlier, if known."""
    code, (first, end) = _CODES[Outlier(outlier)], block.event_start[[event, event + 1]].tolist()
    number = _number(block, code, first, end) if number is None else number
    text = f"{number:g}"
    if code == ProblemCode.LABEL_FAR_OUT and block.cost_start[first] < block.cost_start[end]:
        text += f" (a reward of {-number:g})"
    problems.locate(code, int(block.line_number[first]), text, reading=block.objects)


def outlier_message(noun: str) -> str:
    """Return the message that an event is not learnt because of an outlier.

    >>> outlier_message(WHAT[1])
    'the label or cost is far beyond those before; the event is not learnt'
    """
    return f"{noun} is far beyond those before; the event is not learnt"


def _number(block: Block, code: ProblemCode, first: int, end: int) -> float:
    """Return the number on the lines [first, end) of an event that is far beyond all before."""
    if code == ProblemCode.WEIGHT_FAR_OUT:
        return float(block.weight[first:end].max())
    if code == ProblemCode.VALUE_FAR_OUT:
        spans = block.line_start[[first, end]]
        values = block.value[slice(*block.span_start[spans].tolist())]
        return float(values[np.abs(values).argmax()])
    costs = slice(*block.cost_start[[first, end]].tolist())
    labelled = block.cost[costs] != UNLABELLED
    if code == ProblemCode.PROBABILITY_FAR_OUT:
        return float(block.probability[costs][labelled].min(initial=1.0))
    labels = np.concatenate([block.cost[costs][labelled], block.label[first:end], block.initial[first:end]])
    labels = labels[labels != UNLABELLED]
    return float(labels[np.abs(labels).argmax()])
