"""Event: one event of a Block as Python values, for inspection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.features.block import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledLine:
    """A line of an event without its features."""

    shared: bool = False  # Whether the line is the ``shared`` line, or a slot.
    slot: bool = False
    tag: str = ""  # Tag, empty if there is none.
    label: float | None = None  # Simple label.
    weight: float = 1.0  # Importance weight, initial prediction.
    initial: float = 0.0
    # Bandit label as written; a missing cost is None. A slot has its logged outcome, then its allowed
    # actions, each with cost None and probability -inf.
    costs: tuple[tuple[int, float | None, float], ...] = ()

    def outcomes(self) -> tuple[list[tuple[int, float, float]], list[int]]:
        """Return the logged outcomes of a slot, (action, cost, probability), and its allowed actions."""
        outcomes = []
        for action, cost, probability in self.costs:
            if probability != -math.inf:
                if cost is None:
                    raise InputError("event: what was logged of a slot has no cost")
                outcomes.append((action, cost, probability))
        return outcomes, [action for action, _, probability in self.costs if probability == -math.inf]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line(LabelledLine):
    """A line of an event."""

    number: int  # 1-based line number in the input.
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
    lines = [
        Line(number=number, features=_features(block, line), **label)
        for line, (number, label) in enumerate(
            zip(block.line_number.tolist(), _labels(block, "replace"), strict=False)
        )
    ]
    return [Event(lines=tuple(lines[first:last])) for first, last in pairwise(block.event_start.tolist())]


def labelled_lines(block: Block) -> Iterator[LabelledLine]:
    """Yield the lines of a block without features; bytes of tags that are not UTF-8 are surrogates."""
    return (LabelledLine(**label) for label in _labels(block, "surrogateescape"))


def _labels(block: Block, errors: str) -> Iterator[dict[str, Any]]:
    """Yield the fields of `LabelledLine` for each line of a block."""
    n_lines = int(block.event_start[-1])
    tags, tag_start = block.tag.tobytes(), block.tag_start.tolist()
    start = block.cost_start[: n_lines + 1].tolist()
    n_costs = start[-1]
    costs = [
        (action, None if cost == UNLABELLED else cost, probability)
        for action, cost, probability in zip(
            block.cost_action[:n_costs].tolist(),
            block.cost[:n_costs].tolist(),
            block.probability[:n_costs].tolist(),
            strict=True,
        )
    ]
    columns = block.shared, block.slot, block.label, block.weight, block.initial
    rows = zip(*(column[:n_lines].tolist() for column in columns), strict=True)
    for line, (shared, slot, label, weight, initial) in enumerate(rows):
        yield {
            "shared": bool(shared),
            "slot": bool(slot),
            "tag": tags[tag_start[line] : tag_start[line + 1]].decode("utf-8", errors),
            "label": None if label == UNLABELLED else label,
            "weight": weight,
            "initial": initial,
            "costs": tuple(costs[start[line] : start[line + 1]]),
        }


def _features(block: Block, line: int) -> dict[str, list[tuple[int, float]]]:
    """Return the features of a line as hash and value, by namespace."""
    features: dict[str, list[tuple[int, float]]] = {}
    for span in range(block.line_start[line], block.line_start[line + 1]):
        name = block.namespaces.names[block.span_namespace[span]].decode("utf-8", "replace")
        span_slice = slice(block.span_start[span], block.span_start[span + 1])
        pairs = zip(block.hash[span_slice].tolist(), block.value[span_slice].tolist(), strict=True)
        features.setdefault(name, []).extend(pairs)
    return features
