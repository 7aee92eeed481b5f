"""``TopicJoin``: decisions and rewards from topics, joined by event id with the join of the service.

A decision is a message in dsjson with ``EventId``, ``a`` and ``p``; a reward is a message with ``EventId``,
``RewardValue`` and, optionally, ``RewardId``, which identifies a repetition. The time of the join is the time
of the messages. Other records of a service's log have only a time here. Records that a service has sent twice
(`onlineauto.service.topics.log_topic`) are recognised by their positions in its log.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from onlineauto.errors import InputError
from onlineauto.formats.decisions.dsjson import LogRecord
from onlineauto.service.join.join import Join
from onlineauto.service.learning.joined import label_line
from onlineauto.service.topics.partitions import Origin  # noqa: TC001 - msgspec reads the annotations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.join.settings import JoinSettings

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICKS: Final = ("tick", "settings", "model", "activate")
"""Types of records in a service's log that are neither decisions nor rewards."""


class TopicLine(NamedTuple):
    """A line to learn, the place of its message, and the message if it was deserialised."""

    origin: Origin
    line: bytes
    raw: bytes | None = None


class _Message(msgspec.Struct):
    """The members of a message that the join reads."""

    kind: str = msgspec.field(name="Type", default="")
    event_id: str = msgspec.field(name="EventId", default="")
    reward: float | None = msgspec.field(name="RewardValue", default=None)
    key: str = msgspec.field(name="RewardId", default="")
    ranked: list[int] = msgspec.field(name="a", default_factory=list)
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)
    source: str = msgspec.field(name="Source", default="")
    behind: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="Behind", default=0)


class _State(msgspec.Struct):
    """The content of `TopicJoin.state`."""

    join: dict[str, Any]
    waiting: list[tuple[int, TopicLine]]
    number: int


_DECODER: Final = msgspec.json.Decoder(_Message)
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class TopicJoin:
    """The decisions that wait for their rewards, with their lines."""

    def __init__(self, settings: JoinSettings, state: bytes | None = None) -> None:
        self.join, self._settings = Join(settings), settings
        self._waiting: dict[int, TopicLine] = {}
        self._number = 0
        if state is not None:
            try:
                stored = msgspec.msgpack.decode(state, type=_State)
                self.join = Join.of(stored.join)
            except (msgspec.MsgspecError, ValueError) as error:
                raise InputError(f"the state of the join cannot be read: {error}") from None
            self._waiting = dict(stored.waiting)
            self._number = stored.number

    def take(self, entry: TopicLine, time: float) -> Iterator[TopicLine]:
        """Take the next message, and yield the labelled lines of the decisions that it ends."""
        record = _record_of(entry.line, entry.origin.partition)
        if record.source and record.behind <= self.join.sources.get(record.source, 0):
            self.join.counts.repeated += 1  # without its time, which is that of its first arrival
            return
        if self.join.settings != self._settings:
            changed = LogRecord("settings", _EPOCH, settings=msgspec.to_builtins(self._settings))
            yield from self._ended(self.join.take(changed, 0, 0, at=time))
        ranked = self.join.counts.ranked
        self._number += 1
        ended = self.join.take(record, self._number, len(entry.line), at=time)
        if self.join.counts.ranked > ranked:
            line = entry.line
            self._waiting[self._number] = (
                entry._replace(line=_unlabelled(line)) if b'"_label' in line else entry
            )
        yield from self._ended(ended)

    def _ended(self, ended: list[Any]) -> Iterator[TopicLine]:
        for each in ended:
            entry = self._waiting.pop(each.position)
            yield entry._replace(line=label_line(entry.line, _record_of(entry.line, 0), each.reward))

    def state(self) -> bytes:
        """Return the state, with the lines that wait."""
        return msgspec.msgpack.encode(_State(self.join.state(), [*self._waiting.items()], self._number))


def _record_of(line: bytes, partition: int) -> LogRecord:
    """Return the record that a message is to the join."""
    try:
        message = _DECODER.decode(line)
    except (
        msgspec.MsgspecError,
        ValueError,
        RecursionError,
    ) as error:  # a UnicodeDecodeError is a ValueError
        raise InputError(f"not a decision or a reward: {error}") from None
    if message.kind in _TICKS:
        return LogRecord("tick", _EPOCH)
    source = f"{message.source}[{partition}]" if message.source else ""
    if not message.event_id:
        raise InputError("not a decision or a reward: it has no EventId")
    if message.reward is not None and not message.ranked:
        if not abs(message.reward) < 3e38:
            raise InputError(f"RewardValue is {message.reward}, which a float32 cannot have")
        return LogRecord(
            "reward",
            _EPOCH,
            message.event_id,
            reward=message.reward,
            key=message.key,
            source=source,
            behind=message.behind,
        )
    if not message.ranked or len(message.ranked) != len(message.probabilities):
        raise InputError("not a decision: a and p are not equally long lists of actions and probabilities")
    return LogRecord(
        "rank",
        _EPOCH,
        message.event_id,
        message.ranked,
        message.probabilities,
        source=source,
        behind=message.behind,
    )


def _unlabelled(line: bytes) -> bytes:
    """Return a decision without the labels that it was written with."""
    members = {name: value for name, value in _MEMBERS.decode(line).items() if not name.startswith("_label")}
    return msgspec.json.encode(members)
