"""``rank_slots`` and ``reward_slots``: an event with several slots, as one decision for each slot."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from onlineauto.service.ranking.slots import SLOT, check_slots, question_of, slot_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.front import Front
    from onlineauto.service.ranking.answer import Ranked
    from onlineauto.service.ranking.slots import SlotsQuestion


def rank_slots(front: Front, asked: SlotsQuestion, done: Done) -> list[Ranked]:
    """Fill slots in order, each with an action that no earlier slot shows; return an answer for each.

    All slots are checked before the first one is logged. `done` is called once all are in the log.

    Raises
    ------
    RefusedError
        The question is malformed or too large, too much waits, or the id is in use by another question.
    """
    check_slots(asked, front.limits)
    front.allow_namespace(SLOT)
    for slot in asked.slots:
        front.check(question_of(asked, slot))
    front.check_room(len(asked.slots))
    part, answers, shown = after_all(len(asked.slots), done), [], set[str]()
    for slot in asked.slots:
        answer = front.rank(question_of(asked, slot, shown), part)
        answers.append(answer)
        shown.add(answer.ids[0])
    return answers


def reward_slots(
    front: Front, event_id: str, rewards: Sequence[tuple[str, float]], done: Done, *, key: str = ""
) -> None:
    """Record rewards of slots, by the id of the slot; `done` is called once all are in the log.

    Raises
    ------
    RefusedError
        A reward is rejected, like a single reward; those before it are recorded.
    """
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
