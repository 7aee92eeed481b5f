"""The view of an event that a search has: context, actions, the logged action and its cost.

A slot of a conditional bandit (CCB) is a separate event. The features of the slot join those of the shared
line, and its actions are those that no earlier slot has. A feature in a separate namespace identifies the
slot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.hashing import murmur3

if TYPE_CHECKING:
    from onlineauto import Event as ReadEvent
    from onlineauto.features.event import Line
    from tests.naive.native_search.options import Options

F = np.float32
ZERO = F(0)
TOLD = b"\x8c"
"""Namespace of the feature that identifies a slot."""

LONG = 48
"""A vector with more numbers is long."""

Feature = tuple[int, np.float32]
"""Hash and value."""

Groups = dict[bytes, list[Feature]]
"""Features by namespace, in the order in which they were read."""


@dataclass(frozen=True)
class Label:
    """The logged action, as an index into the actions, and its outcome."""

    action: int
    cost: np.float32
    probability: np.float32
    weight: np.float32


@dataclass(frozen=True, kw_only=True)
class Event:
    """A choice among actions, or a single line, which is one action without a context."""

    shared: Groups | None
    actions: tuple[Groups, ...]
    numbers: tuple[int, ...]
    """Numbers of the actions."""
    label: Label | None
    of_actions: frozenset[bytes]
    """Return the namespaces of the actions and not of the context, judged by this event."""
    initial: np.float32 = ZERO

    @property
    def names(self) -> set[bytes]:
        """Namespaces that can be crossed."""
        return set().union(self.shared or {}, *self.actions) - {TOLD}

    @property
    def vectors(self) -> frozenset[bytes]:
        """Namespaces that are long vectors: the hash of each number is the hash before plus 1."""
        groups = chain.from_iterable(each.items() for each in (self.shared or {}, *self.actions))
        return frozenset(name for name, features in groups if _is_long_vector(features))


def _is_long_vector(features: list[Feature]) -> bool:
    first = features[0][0] if features else 0
    return len(features) > LONG and all(
        hash_ == (first + index) % 2**32 for index, (hash_, _) in enumerate(features)
    )


def events_of(read: Iterable[ReadEvent], options: Options) -> Iterator[Event]:
    """Convert events to the view of a search."""
    for event in read:
        if options.ccb_explore_adf:
            yield from _slots(event)
        elif options.cb_explore_adf:
            yield _choice(event)
        else:
            yield _single(event)


def _groups(line: Line) -> Groups:
    return {
        name.encode(): [(hash_, F(x)) for hash_, x in features] for name, features in line.features.items()
    }


def _single(event: ReadEvent) -> Event:
    (line,) = event.lines
    label = None if line.label is None else Label(0, F(line.label), F(1), F(line.weight))
    return Event(
        shared=None,
        actions=(_groups(line),),
        numbers=(0,),
        label=label,
        of_actions=frozenset(),
        initial=F(line.initial),
    )


def _choice(event: ReadEvent) -> Event:
    actions = tuple(map(_groups, event.actions))
    label = None
    for number, line in enumerate(event.actions):
        if label is None and len(line.costs) == 1 and line.costs[0][1] is not None:
            _, cost, probability = line.costs[0]
            label = Label(number, F(cost), F(probability), F(event.actions[0].weight))
    return Event(
        shared=_groups(event.shared) if event.shared else None,
        actions=actions,
        numbers=tuple(range(len(actions))),
        label=label,
        of_actions=_of_actions(actions, shares=event.shared is not None),
    )


def _of_actions(actions: tuple[Groups, ...], *, shares: bool) -> frozenset[bytes]:
    """Return the namespaces of the lines of actions; if each repeats the context, those that differ."""
    names = set().union(*actions)
    if shares:
        return frozenset(names)
    return frozenset(
        name for name in names if any(each.get(name) != actions[0].get(name) for each in actions)
    )


def _slots(event: ReadEvent) -> Iterator[Event]:
    assert event.shared is not None
    actions = tuple(map(_groups, event.actions))
    left = list(range(len(actions)))
    for number, slot in enumerate(event.slots):
        ((chosen, cost, probability),) = slot.costs  # this program draws nothing: every slot has its outcome
        assert cost is not None
        shared = _groups(event.shared)
        for name, features in _groups(slot).items():
            assert name != b" "
            shared.setdefault(name, []).extend(features)
        shared[TOLD] = [(murmur3(b"index%d" % number, murmur3(b"_id", 0)), F(1))]
        weight = F(event.actions[chosen].weight)
        yield Event(
            shared=shared,
            actions=tuple(actions[each] for each in left),
            numbers=tuple(left),
            label=Label(left.index(chosen), F(cost), F(probability), weight),
            of_actions=_of_actions(actions, shares=True),
        )
        left.remove(chosen)
