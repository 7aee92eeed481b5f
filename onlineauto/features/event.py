"""Event: one event of a Block as Python values, for inspection."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from onlineauto.features.block import UNLABELLED

if TYPE_CHECKING:
    from onlineauto.features.block import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of an event."""

    number: int  # 1-based line number in the input.
    shared: bool  # Whether the line is the ``shared`` line.
    slot: bool = False  # Whether the line is a slot.
    tag: str  # Tag, empty if none.
    label: float | None  # Simple label.
    weight: float  # Importance weight, initial prediction.
    initial: float
    costs: tuple[tuple[int, float | None, float], ...]  # Bandit label as written; a missing cost is None.
    features: dict[str, list[tuple[int, float]]]  # Features by namespace; the default namespace is ``" "``.


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event: its lines, with the shared line first if there is one."""

    lines: tuple[Line, ...]

    @property
    def shared(self) -> Line | None:
        """The shared line, None if there is none."""
        return self.lines[0] if self.lines[0].shared else None

    @property
    def actions(self) -> tuple[Line, ...]:
        """The lines that are actions."""
        return tuple(line for line in self.lines[self.lines[0].shared :] if not line.slot)

    @property
    def slots(self) -> tuple[Line, ...]:
        """The lines that are slots."""
        return tuple(line for line in self.lines if line.slot)


def events(block: Block) -> list[Event]:
    """Return the events of a block."""
    starts = block.event_start.tolist()
    return [
        Event(lines=tuple(_line(block, line) for line in range(first, last)))
        for first, last in pairwise(starts)
    ]


def _line(block: Block, line: int) -> Line:
    """Return a line of a block as a `Line`."""
    label = block.label[line]
    costs = range(block.cost_start[line], block.cost_start[line + 1])
    return Line(
        number=int(block.line_number[line]),
        shared=bool(block.shared[line]),
        slot=bool(block.slot[line]),
        tag=block.tag_of(line),
        label=None if label == UNLABELLED else float(label),
        weight=float(block.weight[line]),
        initial=float(block.initial[line]),
        costs=tuple(_cost(block, i) for i in costs),
        features=_features(block, line),
    )


def _cost(block: Block, i: int) -> tuple[int, float | None, float]:
    """Return a cost of a block as action, cost (None if unlabelled) and probability."""
    cost = block.cost[i]
    return int(block.cost_action[i]), None if cost == UNLABELLED else float(cost), float(block.probability[i])


def _features(block: Block, line: int) -> dict[str, list[tuple[int, float]]]:
    """Return the features of a line as hash and value, by namespace."""
    features: dict[str, list[tuple[int, float]]] = {}
    for span in range(block.line_start[line], block.line_start[line + 1]):
        name = block.namespaces.names[block.span_namespace[span]].decode("utf-8", "replace")
        span_slice = slice(block.span_start[span], block.span_start[span + 1])
        pairs = zip(block.hash[span_slice].tolist(), block.value[span_slice].tolist(), strict=True)
        features.setdefault(name, []).extend(pairs)
    return features
