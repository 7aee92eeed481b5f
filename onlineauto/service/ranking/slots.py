"""``SlotsRankRequest``: one event whose slots are filled in order, each by a decision with its own reward.

A slot is ranked like any other `RankRequest`. Its context is that of the event, with the features of the slot
and its id in the namespace ``slot``. Its actions are those that no earlier slot shows. So slots are logged,
joined, learnt and drawn again like all other decisions, under the id ``EVENT#SLOT``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from onlineauto.service.ranking.rank_request import Features, RankRequest
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onlineauto.service.options import Limits

SLOT: Final = "slot"
"""The namespace that has the id of a slot as its feature."""
MARK: Final = "#"
"""Separates the id of an event from that of its slot."""


class SlotRequest(NamedTuple):
    """A slot: its id, objects of features, its baseline ("" is the first action), and excluded actions."""

    id: str
    features: Sequence[Features] = ()
    baseline: str = ""
    excluded: Sequence[str] = ()


class SlotsRankRequest(NamedTuple):
    """A request to rank slots: the members of `RankRequest`, and the slots in order."""

    event_id: str
    context: Sequence[Features]
    ids: Sequence[str]
    actions: Sequence[Sequence[Features]]
    slots: Sequence[SlotRequest]
    unit: str = ""
    deferred: bool = False


def slot_id(event_id: str, slot: str) -> str:
    """Return the id of the decision of a slot.

    >>> slot_id("e1", "top")
    'e1#top'
    """
    if not slot or MARK in slot:
        raise RefusedError(f"the id of a slot has no '#' and is not empty, unlike {slot!r}")
    return f"{event_id}{MARK}{slot}"


def check_slots(asked: SlotsRankRequest, limits: Limits) -> None:
    """Check that each slot can be filled, whatever the slots before it show."""
    if not asked.slots:
        raise RefusedError("there are no slots: give at least one")
    if len(asked.slots) > limits.slots:
        raise RefusedError(
            f"there are {len(asked.slots)} slots; at most {limits.slots} are accepted", status=413
        )
    if len({each.id for each in asked.slots}) < len(asked.slots):
        raise RefusedError("two slots have the same id; each needs its own")
    for number, slot in enumerate(asked.slots):
        slot_id(asked.event_id, slot.id)
        for name in (slot.baseline, *slot.excluded):
            if name and name not in asked.ids:
                raise RefusedError(f"slot {slot.id!r} names {name!r}, which is none of the actions")
        if slot.baseline in slot.excluded:
            raise RefusedError(f"slot {slot.id!r} excludes its baseline {slot.baseline!r}")
        if len(asked.ids) - len(set(slot.excluded)) <= number:
            raise RefusedError(
                f"slot {slot.id!r} may have no action left: of {len(asked.ids)} actions, it excludes "
                f"{len(set(slot.excluded))}, and the slots before it show {number}"
            )


def slot_rank_request(asked: SlotsRankRequest, slot: SlotRequest, shown: Collection[str] = ()) -> RankRequest:
    """Return the rank request of one slot, without the actions that are excluded or shown already.

    >>> asked = SlotsRankRequest("e", [], ["a", "b", "c"], [[], [], []], [SlotRequest("top", baseline="c")])
    >>> slot_rank_request(asked, asked.slots[0], {"a"}).ids
    ['c', 'b']
    """
    out = {*shown, *slot.excluded}
    left = [(name, each) for name, each in zip(asked.ids, asked.actions, strict=True) if name not in out]
    left.sort(key=lambda each: each[0] != slot.baseline)  # the first action is the baseline
    own: Features = {SLOT: msgspec.Raw(msgspec.json.encode({slot.id: 1}))}
    return RankRequest(
        slot_id(asked.event_id, slot.id),
        [*asked.context, *slot.features, own],
        [name for name, _ in left],
        [each for _, each in left],
        deferred=asked.deferred,
        unit=asked.unit or asked.event_id,
    )
