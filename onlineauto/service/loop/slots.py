"""``rank_slots``, ``reward_slots``, ``activate_slots``: an event with slots, each of which is a decision."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from onlineauto.service.ranking.slots import MARK, SLOT, check_slots, slot_id, slot_rank_request

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.service.join.join import Join
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.front import Front
    from onlineauto.service.ranking.answer import Ranked
    from onlineauto.service.ranking.slots import SlotsRankRequest

_FEW: Final = 1000


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
    for each in list(ids):
        front.activate(each, part)


def rank_slots(front: Front, asked: SlotsRankRequest, done: Done) -> list[Ranked]:
    """Fill slots in order, each with an action that no earlier slot shows; return an answer for each.

    All slots are checked before the first one is logged. `done` is called once all are in the log.
    """
    check_slots(asked, front.limits)
    front.allow_namespace(SLOT)
    for slot in asked.slots:
        front.check(slot_rank_request(asked, slot))
    front.check_room(len(asked.slots))
    part, answers, shown = after_all(len(asked.slots), done), [], set[str]()
    for slot in asked.slots:
        answer = front.rank(slot_rank_request(asked, slot, shown), part)
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
    for each, (_, value) in zip(ids, rewards, strict=True):
        front.reward(each, value, part, key=key)


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
