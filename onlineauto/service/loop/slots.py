"""Events with slots, which are filled in order, each by a decision with its own reward.

A slot is ranked like any other `RankRequest`. Its context is that of the event, with the features of the slot
and its id in the namespace ``slot``. Its actions are those that no earlier slot shows. So slots are logged,
joined, learnt and drawn again like all other decisions, under the id ``EVENT#SLOT``.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from onlineauto.service.ranking import Features, RankRequest
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from onlineauto.service.join.join import Join
    from onlineauto.service.log.segment_log import Done
    from onlineauto.service.loop.front import Front
    from onlineauto.service.options import Limits
    from onlineauto.service.ranking import Ranked

_FEW: Final = 1000

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


def check_slots(request: SlotsRankRequest, limits: Limits) -> None:
    """Check that each slot can be filled, whatever the slots before it show."""
    if not request.slots:
        raise RefusedError("there are no slots: give at least one")
    if len(request.slots) > limits.slots:
        raise RefusedError(
            f"there are {len(request.slots)} slots; at most {limits.slots} are accepted", status=413
        )
    if len({each.id for each in request.slots}) < len(request.slots):
        raise RefusedError("two slots have the same id; each needs its own")
    for number, slot in enumerate(request.slots):
        slot_id(request.event_id, slot.id)
        for name in (slot.baseline, *slot.excluded):
            if name and name not in request.ids:
                raise RefusedError(f"slot {slot.id!r} names {name!r}, which is none of the actions")
        if slot.baseline in slot.excluded:
            raise RefusedError(f"slot {slot.id!r} excludes its baseline {slot.baseline!r}")
        if len(request.ids) - len(set(slot.excluded)) <= number:
            raise RefusedError(
                f"slot {slot.id!r} may have no action left: of {len(request.ids)} actions, it excludes "
                f"{len(set(slot.excluded))}, and the slots before it show {number}"
            )


def slot_rank_request(
    request: SlotsRankRequest, slot: SlotRequest, shown: Collection[str] = ()
) -> RankRequest:
    """Return the rank request of one slot, without the actions that are excluded or shown already.

    >>> asked = SlotsRankRequest("e", [], ["a", "b", "c"], [[], [], []], [SlotRequest("top", baseline="c")])
    >>> slot_rank_request(asked, asked.slots[0], {"a"}).ids
    ['c', 'b']
    """
    out = {*shown, *slot.excluded}
    left = [
        (name, action) for name, action in zip(request.ids, request.actions, strict=True) if name not in out
    ]
    left.sort(key=lambda each: each[0] != slot.baseline)  # the first action is the baseline
    slot_features: Features = {SLOT: msgspec.Raw(msgspec.json.encode({slot.id: 1}))}
    return RankRequest(
        slot_id(request.event_id, slot.id),
        [*request.context, *slot.features, slot_features],
        [name for name, _ in left],
        [each for _, each in left],
        deferred=request.deferred,
        unit=request.unit or request.event_id,
    )


class DeferredSlots:
    """The slots that wait for the activation of their event, by its id, which the join does not know."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._read()

    def add(self, event_id: str) -> None:
        """Add the id of a deferred decision, if it is one of a slot."""
        if len(self._slots) > 2 * self._join.waiting + _FEW:  # most of these have ended since
            self._read()
        self._add(event_id)

    def ids_of(self, event_id: str) -> list[str]:
        """Return the ids of the deferred slots of an event, active ones included."""
        return self._slots.get(event_id, [])

    def _read(self) -> None:
        self._slots: dict[str, list[str]] = {}
        for event_id in self._join.deferred():
            self._add(event_id)

    def _add(self, event_id: str) -> None:
        event, mark, _ = event_id.rpartition(MARK)
        if mark:
            self._slots.setdefault(event, []).append(event_id)


def activate_slots(front: Front, event_id: str, done: Done, *, single: bool) -> None:
    """Activate all deferred slots of an event; without one, the event itself if it may be `single`."""
    ids = front.deferred_slots.ids_of(event_id) or [event_id] * single
    if not ids:
        done(None)
        return
    part = after_all(len(ids), done)
    for slot in list(ids):
        front.activate(slot, part)


def rank_slots(front: Front, request: SlotsRankRequest, done: Done) -> list[Ranked]:
    """Fill slots in order, each with an action that no earlier slot shows; return an answer for each.

    All slots are checked before the first one is logged. `done` is called once all are in the log.
    """
    check_slots(request, front.limits)
    front.allow_namespace(SLOT)
    for slot in request.slots:
        front.check(slot_rank_request(request, slot))
    front.check_room(len(request.slots))
    part, answers, shown = after_all(len(request.slots), done), [], set[str]()
    for slot in request.slots:
        answer = front.rank(slot_rank_request(request, slot, shown), part)
        answers.append(answer)
        shown.add(answer.ids[0])
    return answers


def reward_slots(
    front: Front, event_id: str, rewards: Sequence[tuple[str, float]], done: Done, *, key: str = ""
) -> None:
    """Record rewards of slots, by the id of the slot; `done` is called once all are in the log."""
    ids = [slot_id(event_id, slot) for slot, _ in rewards]
    if not ids:
        done(None)
        return
    part = after_all(len(ids), done)
    for event, (_, value) in zip(ids, rewards, strict=True):
        front.reward(event, value, part, key=key)


def after_all(count: int, done: Done) -> Done:
    """Return a function that calls `done` when it has been called `count` times, with the first error.

    >>> part = after_all(2, print)
    >>> part(None); part(None)
    None
    """
    lock, left, failed = threading.Lock(), [count], list[Exception]()

    def part(error: Exception | None) -> None:
        with lock:
            left[0] -= 1
            failed.extend([] if error is None else [error])
            is_last = left[0] == 0
        if is_last:
            done(failed[0] if failed else None)

    return part
