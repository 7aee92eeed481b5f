"""``Ranked``: the answer to a rank, its line in the log, and the answer read back from that line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from onlineauto.api.decisions.draw import draw_index
from onlineauto.service.log.record import sealed, stamp
from onlineauto.service.ranking.choice import seed_of, uniform_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.service.ranking.choice import RankedActions


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
