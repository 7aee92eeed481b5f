"""Records: lines of JSON that end with their checksum. A decision is an unchanged line of dsjson.

::

    {"Type":"rank","EventId":"e1","Timestamp":"…","a":[2,1],"p":[0.9,0.1],…,"c":{…},"crc":"0b7e1d5a"}

A newline ends a record. JSON contains no raw newline, so it frames the record as well as a length would, and
people, ``jq`` and Vowpal Wabbit can read the file. The checksum is the CRC-32 of all bytes before its member.
"""

from __future__ import annotations

import time
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Final, Literal
from zlib import crc32

import msgspec

from onlineauto.errors import InputError

Kind = Literal["rank", "reward", "activate", "metric", "tick", "settings", "model"]
"""Kinds of records; a tick has only a time."""

_TAIL: Final = len(b',"crc":"00000000"}\n')


class RecordsAnswer(msgspec.Struct):
    """The answer to ``POST /v1/records``: the position from which more records are wanted."""

    position: int


class LogRecord(msgspec.Struct, frozen=True):
    """The members of a record that the join reads; the context of a decision is not among them.

    Attributes
    ----------
    kind : str
        The kind of the record.
    time : datetime
        The time at which it was written.
    event_id : str
        The id of its decision.
    ranked, probabilities : list
        Of a decision: its actions, counted from 1, the chosen one first, and their probabilities.
    deferred : bool
        Of a decision: it has to be activated before it is learnt.
    arm, bucket : str and int
        Of a decision of an experiment: its arm, and the bucket of its unit; "" and 0 without one.
    epoch : int
        Of a decision: the epoch of the experiment, which each change of the model, the mode, the arms or the
        guardrails increases.
    metric, value : str and float
        Of a metric: its name, and its value for a decision.
    reward : float
        Of a reward: its value.
    key : str
        Of a reward or a metric: the key that identifies a repetition; "" without a key.
    settings : mapping
        Of settings: the settings in force from here on.
    model : str
        Of a model: the name of the model that learns from here on.
    source, behind, taken : str, int and datetime
        Of a record taken over from a rank server: the name of its log, the position behind the record there,
        and the time of taking it over.
    no_room : bool
        Of a reward or an activation taken over: too many were waiting for their decisions to keep it. Of a
        metric: its decision has too many keys to remember this one.
    passed : float
        Of a tick: the seconds since the record before, counted by the process that wrote both.
    """

    kind: Kind = msgspec.field(name="Type")
    time: datetime = msgspec.field(name="Timestamp")
    event_id: str = msgspec.field(name="EventId", default="")
    ranked: list[int] = msgspec.field(name="a", default_factory=list)
    probabilities: list[float] = msgspec.field(name="p", default_factory=list)
    deferred: bool = msgspec.field(name="DeferredAction", default=False)
    arm: str = msgspec.field(name="Arm", default="")
    bucket: int = msgspec.field(name="Bucket", default=0)
    epoch: int = msgspec.field(name="Epoch", default=0)
    metric: str = msgspec.field(name="Metric", default="")
    value: float = msgspec.field(name="Value", default=0.0)
    reward: float = msgspec.field(name="RewardValue", default=0.0)
    key: str = msgspec.field(name="RewardId", default="")  # a metric's key has this name in the log, too
    settings: dict[str, Any] = msgspec.field(name="Settings", default_factory=dict)
    model: str = msgspec.field(name="Model", default="")
    source: str = msgspec.field(name="Source", default="")
    behind: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = msgspec.field(name="Behind", default=0)
    taken: datetime | None = msgspec.field(name="Taken", default=None)
    no_room: bool = msgspec.field(name="NoRoom", default=False)
    passed: Annotated[float, msgspec.Meta(ge=0, le=1e9)] = msgspec.field(name="Passed", default=0.0)


_DECODER = msgspec.json.Decoder(LogRecord)


def sealed(record: bytes) -> bytes:
    r"""Return a JSON object as the line of a record, with its checksum.

    >>> sealed(b'{"Type":"tick"}')
    b'{"Type":"tick","crc":"53c100da"}\n'
    """
    body = record[:-1]
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


def is_whole(line: bytes) -> bool:
    r"""Return whether a line is a record with the right checksum.

    >>> is_whole(sealed(b'{"Type":"tick"}')), is_whole(b'{"Type":"tock","crc":"53c100da"}\n')
    (True, False)
    """
    return line[-_TAIL:] == b',"crc":"%08x"}\n' % crc32(line[:-_TAIL])


def taken_over(line: bytes, *, source: str, behind: int, time: float, no_room: bool = False) -> bytes:
    """Return a record of another log as a line of this log, with its source and position."""
    origin = {
        "Source": source,
        "Behind": behind,
        "Taken": stamp(time),
        **({"NoRoom": True} if no_room else {}),
    }
    return sealed(line[:-_TAIL] + b"," + msgspec.json.encode(origin)[1:])


def read_record(line: bytes, *, where: str = "the log") -> LogRecord:
    """Return the members of a record that the join reads."""
    if not is_whole(line):
        raise InputError(f"{where}: the record is damaged: its checksum does not match its content")
    try:
        return _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"{where}: not a record of a service's log: {error}") from None


def stamp(seconds: float) -> str:
    """Return a time in the format of records.

    >>> stamp(1.25)
    '1970-01-01T00:00:01.250000Z'
    """
    microseconds = round(seconds * 1e6)
    second, rest = divmod(microseconds, 1_000_000)
    return f"{_second(second)}.{rest:06d}Z"


@lru_cache(maxsize=4)
def _second(second: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
