"""``Ranked``: the answer to a rank, its line in the log, and the answer read back from that line."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from onlineauto.api.decisions.draw import draw_index
from onlineauto.service.log.record import sealed, stamp

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


class _DecisionHead(msgspec.Struct):
    """The members of a logged decision that come before its context, in their order in the log."""

    kind: str = msgspec.field(name="Type")
    event_id: str = msgspec.field(name="EventId")
    time: str = msgspec.field(name="Timestamp")
    ranked: list[int] = msgspec.field(name="a")
    probabilities: list[float] = msgspec.field(name="p")
    state: dict[str, str] = msgspec.field(name="VWState")
    seed: int
    mode: str


class _Action(msgspec.Struct):
    tag: str = msgspec.field(name="_tag")


class _Context(msgspec.Struct):
    actions: list[_Action] = msgspec.field(name="_multi")


class _Line(msgspec.Struct):
    event_id: str = msgspec.field(name="EventId")
    ranked: list[int] = msgspec.field(name="a")
    probabilities: list[float] = msgspec.field(name="p")
    state: dict[str, str] = msgspec.field(name="VWState")
    context: msgspec.Raw = msgspec.field(name="c")
    excluded: list[int] = msgspec.field(name="Excluded", default_factory=list)
    deferred: bool = msgspec.field(name="DeferredAction", default=False)


_ENCODER = msgspec.json.Encoder()
_LINE = msgspec.json.Decoder(_Line)
_CONTEXT = msgspec.json.Decoder(_Context)


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
    head = _DecisionHead(
        "rank",
        ranked.event_id,
        stamp(time),
        [each + 1 for each in ranked.actions],
        ranked.probabilities,
        {"m": ranked.model},
        seed,
        mode,
    )
    more = b',"DeferredAction":true' if deferred else b""
    if excluded:
        more += b',"Excluded":' + _ENCODER.encode([each + 1 for each in excluded])
    if arm:
        more += b',"Arm":"%b","Bucket":%d' % (arm.encode(), bucket)
    if epoch:
        more += b',"Epoch":%d' % epoch
    return sealed(b'%b%b,"c":%b}' % (_ENCODER.encode(head)[:-1], more, context))


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
    parsed = _LINE.decode(line)
    tags = [each.tag for each in _CONTEXT.decode(parsed.context).actions]
    order = [each - 1 for each in parsed.ranked]
    answer = Ranked(
        parsed.event_id,
        [tags[each] for each in order],
        order,
        parsed.probabilities,
        parsed.state["m"],
    )
    return answer, bytes(parsed.context), [each - 1 for each in parsed.excluded], parsed.deferred
