"""``Ranked``: the answer to a rank, its line in the log, and the answer read back from that line."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from onlineauto.api.decisions.draw import draw_index
from onlineauto.formats.decisions.dsjson import decision_line, stamp
from onlineauto.service.log.record import read_record, sealed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_BITS: Final = 53


class RankedActions(NamedTuple):
    """All actions by index, the chosen one first, the others by falling probability; and probabilities."""

    actions: list[int]
    probabilities: list[float]


def seed_of(app: str, event_id: str) -> int:
    """Return the seed of the draw for an event, from 0 to 2^53 - 1.

    >>> seed_of("default", "e1") == seed_of("default", "e1") != seed_of("other", "e1")
    True
    """
    digest = blake2b(event_id.encode(), digest_size=8, key=_key_of(app)).digest()
    return int.from_bytes(digest) >> (64 - _BITS)


@lru_cache(maxsize=4)
def _key_of(app: str) -> bytes:
    return blake2b(app.encode(), digest_size=32).digest()


def uniform_of(seed: int) -> float:
    """Return a seed as a number in [0, 1)."""
    return seed / 2.0**_BITS


def choose(pmf: Sequence[float], excluded: Iterable[int], seed: int) -> RankedActions:
    """Draw an action from a pmf, without the excluded actions.

    >>> choose([0.25, 0.5, 0.25], [1], seed=0)
    RankedActions(actions=[0, 2, 1], probabilities=[0.5, 0.5, 0.0])
    """
    chances, out = list(pmf), set(excluded)
    for action in out:
        chances[action] = 0.0
    total = sum(chances)
    if total <= 0.0:
        chances = [float(action not in out) for action in range(len(chances))]
        total = sum(chances)
    chances = [each / total for each in chances]
    return _first(draw_index(chances, uniform_of(seed)), chances)


def certain_choice(action: int, count: int) -> RankedActions:
    """Return the choice of an action with probability 1.

    >>> certain_choice(1, 3)
    RankedActions(actions=[1, 0, 2], probabilities=[1.0, 0.0, 0.0])
    """
    return _first(action, [float(each == action) for each in range(count)])


def _first(action: int, chances: list[float]) -> RankedActions:
    order = sorted(range(len(chances)), key=chances.__getitem__, reverse=True)
    if order[0] != action:
        order.remove(action)
        order.insert(0, action)
    return RankedActions(order, [chances[each] for each in order])


class Ranked(NamedTuple):
    """The answer to a rank."""

    event_id: str  # The id of the decision.
    ids: list[str]  # Ids of all actions, the chosen one first.
    actions: list[int]  # The indices of the same actions in the request.
    probabilities: list[float]  # Their probabilities.
    model: str  # The name of the model that ranked.


def line_of(
    ranked: Ranked,
    context: bytes,
    *,
    time: float,
    seed: int,
    mode: str,
    deferred: bool = False,
    excluded: Sequence[int] = (),
    arm: str = "",
    bucket: int = 0,
    epoch: int = 0,
) -> bytes:
    """Return the line of a decision in the log."""
    members: dict[str, Any] = {
        "Type": "rank",
        "EventId": ranked.event_id,
        "Timestamp": stamp(time),
        "a": [action + 1 for action in ranked.actions],
        "p": ranked.probabilities,
        "VWState": {"m": ranked.model},
        "seed": seed,
        "mode": mode,
    }
    if deferred:
        members["DeferredAction"] = True
    if excluded:
        members["Excluded"] = [action + 1 for action in excluded]
    if arm:
        members |= {"Arm": arm, "Bucket": bucket}
    if epoch:
        members["Epoch"] = epoch
    return sealed(decision_line(members, context))


def answer_of(choice: RankedActions, ids: Sequence[str], *, event_id: str, model: str) -> Ranked:
    """Return the answer for a choice."""
    return Ranked(event_id, [ids[each] for each in choice.actions], *choice, model)


def is_drawn(line: bytes, *, app: str) -> bool:
    """Return whether the action of a decision follows from its id and its probabilities.

    For a baseline's decision, return whether its action was certain.
    """
    answer = read_answer(line)[0]
    chances = dict(zip(answer.actions, answer.probabilities, strict=True))
    pmf = [chances[action] for action in range(len(chances))]
    return draw_index(pmf, uniform_of(seed_of(app, answer.event_id))) == answer.actions[0]


def read_answer(line: bytes) -> tuple[Ranked, bytes, list[int], bool]:
    """Return the answer and the request in a line of the log.

    The request is the context, the indices of the excluded actions, and whether the decision is deferred.
    """
    decision = read_record(line)
    tags, order = decision.tags, [action - 1 for action in decision.ranked]
    ids = [tags[action] for action in order]
    answer = Ranked(decision.event_id, ids, order, decision.probabilities, decision.state["m"])
    return answer, bytes(decision.context), [action - 1 for action in decision.excluded], decision.deferred
