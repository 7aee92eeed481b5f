r"""Lines of dsjson: what a log has of a decision and of its reward, how it is written, and how it is read.

A decision is an object with the ranking ``a``, its probabilities ``p`` and, as the last member that Vowpal
Wabbit reads, the context ``c`` with the actions in ``_multi``. A reward that comes later is a line with the
same ``EventId``. A labelled decision begins with its label.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["rank", "reward", "activate", "metric", "cost", "tick", "settings", "model"]
"""Kinds of records of a service; a tick has only a time."""


class LogRecord(msgspec.Struct, frozen=True):
    """The members of a line that a service has written."""

    kind: Kind = msgspec.field(name="Type")
    time: datetime = msgspec.field(name="Timestamp")  # The time at which it was written.
    event_id: str = msgspec.field(name="EventId", default="")
    # Of a decision: its actions, counted from 1, the chosen one first, and their probabilities.
    ranked: list[int] = msgspec.field(name="a", default_factory=list)
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)
    # Of a decision: its context with its actions, the model that ranked, the actions, counted from 1, that
    # could not be chosen, and whether it has to be activated before it is learnt.
    context: msgspec.Raw = msgspec.field(name="c", default=msgspec.Raw(b"{}"))
    state: dict[str, str] = msgspec.field(name="VWState", default_factory=dict)
    excluded: list[int] = msgspec.field(name="Excluded", default_factory=list)
    deferred: bool = msgspec.field(name="DeferredAction", default=False)
    # Of a decision of an experiment: its arm, the bucket of its unit, and the epoch of the experiment, which
    # each change of the model, the mode, the arms or the guardrails increases.
    arm: str = msgspec.field(name="Arm", default="")
    bucket: int = msgspec.field(name="Bucket", default=0)
    epoch: int = msgspec.field(name="Epoch", default=0)
    # Of a decision: the cost of each action, as known then. Of a decision by the model with a budget, and of
    # the report of its cost: the price that was in force. Whether even the cheapest action costs more.
    costs: list[float | None] = msgspec.field(name="Costs", default_factory=list)
    price: float | None = msgspec.field(name="Price", default=None)
    over_budget: bool = msgspec.field(name="OverBudget", default=False)
    # Of a report of a cost: the cost, and of a known decision its action and the cost that it was assumed to
    # have, if any.
    cost: float = msgspec.field(name="Cost", default=0.0)
    action: str = msgspec.field(name="Action", default="")
    assumed: float | None = msgspec.field(name="Assumed", default=None)
    # Of a metric: its name, and its value for a decision.
    metric: str = msgspec.field(name="Metric", default="")
    value: float = msgspec.field(name="Value", default=0.0)
    # Of a reward: its value. Of a reward or a metric: the key that identifies a repetition, or "".
    reward: float = msgspec.field(name="RewardValue", default=0.0)
    key: str = msgspec.field(name="RewardId", default="")
    settings: dict[str, Any] = msgspec.field(name="Settings", default_factory=dict)  # In force from here on.
    model: str = msgspec.field(name="Model", default="")  # The name of the model that learns from here on.
    # Of a record taken over from a rank server: the name of its log, the position behind the record there,
    # and the time of taking it over.
    source: str = msgspec.field(name="Source", default="")
    behind: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="Behind", default=0)
    taken: datetime | None = msgspec.field(name="Taken", default=None)
    # Of a reward or an activation taken over: too many were waiting for their decisions to keep it. Of a
    # metric: its decision has too many keys to remember this one.
    no_room: bool = msgspec.field(name="NoRoom", default=False)
    # Of a tick: the seconds since the record before, counted by the process that wrote both.
    passed: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = msgspec.field(name="Passed", default=0.0)

    @property
    def tags(self) -> list[str]:
        """The ids of the actions of a decision, in the order of its request."""
        return [action.tag for action in _ACTIONS.decode(self.context).actions]


class AnyLine(msgspec.Struct):
    """The members of a line of any log; they may have any type, since a log may be damaged."""

    name_columns: Any = msgspec.field(name="NameColumns", default=None)
    event_id: Any = msgspec.field(name="EventId", default=None)
    ranked: Any = msgspec.field(name="a", default=None)
    probabilities: Any = msgspec.field(name="p", default=None)
    reward: Any = msgspec.field(name="RewardValue", default=None)
    cost: Any = msgspec.field(name="_label_cost", default=None)

    @property
    def is_decision(self) -> bool:
        """True if a reward can be joined to the line."""
        ranked, probabilities = self.ranked, self.probabilities
        if not (
            isinstance(self.event_id, str) and isinstance(ranked, list) and isinstance(probabilities, list)
        ):
            return False
        return bool(ranked and probabilities) and (
            type(ranked[0]) is int and type(probabilities[0]) in (int, float)
        )


class _Action(msgspec.Struct):
    tag: str = msgspec.field(name="_tag", default="")


class _Actions(msgspec.Struct):
    actions: list[_Action] = msgspec.field(name="_multi")


_ACTIONS: Final = msgspec.json.Decoder(_Actions)
_ENCODER: Final = msgspec.json.Encoder()
_LABELLED: Final = b'{%b"_label_cost":%b,"_label_probability":%b,"_label_Action":%d,"_labelIndex":%d,%b'
"""The members of `label_of` as text, which takes a third of the time."""


def decision_line(members: Mapping[str, Any], context: bytes) -> bytes:
    """Return the members of a decision, in order, and its context as a JSON object.

    >>> decision_line({"EventId": "e1", "a": [2, 1], "p": [0.75, 0.25]}, b'{"_multi":[{},{}]}')
    b'{"EventId":"e1","a":[2,1],"p":[0.75,0.25],"c":{"_multi":[{},{}]}}'
    """
    return b'%b,"c":%b}' % (_ENCODER.encode(members)[:-1], context)


def label_of(cost: Any, probability: Any, action: int) -> dict[str, Any]:
    """Return the members that label a decision with the cost and the probability of an action, from 0."""
    return {
        "_label_cost": cost,
        "_label_probability": probability,
        "_label_Action": action + 1,
        "_labelIndex": action,
    }


def labelled_line(
    line: bytes, cost: float, *, action: int, probability: float, name_columns: Any = None
) -> bytes:
    """Return the line of a decision, labelled with the cost of an action, from 1; `name_columns` go first.

    >>> labelled_line(b'{"EventId":"e1"}', -1.0, action=2, probability=0.75).decode()
    '{"_label_cost":-1.0,"_label_probability":0.75,"_label_Action":2,"_labelIndex":1,"EventId":"e1"}'
    """
    names = b"" if name_columns is None else b'"NameColumns":%b,' % _ENCODER.encode(name_columns)
    label = _ENCODER.encode(cost), _ENCODER.encode(probability), action, action - 1
    return _LABELLED % (names, *label, line.lstrip()[1:])


def stamp(seconds: float) -> str:
    """Return a time in the format of a log.

    >>> stamp(1.25)
    '1970-01-01T00:00:01.250000Z'
    """
    microseconds = round(seconds * 1e6)
    second, rest = divmod(microseconds, 1_000_000)
    return f"{_second(second)}.{rest:06d}Z"


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
