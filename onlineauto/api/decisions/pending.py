"""``Pending``: decisions that wait for their rewards, in a bounded table with a time-to-live."""

from __future__ import annotations

import math
import sys
import time
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec.structs import replace

from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.formats.decisions.waiting import Finished, WaitingDecisions
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.formats.mappings.values import plain

if TYPE_CHECKING:
    from collections.abc import Callable


class PendingDecision(msgspec.Struct, frozen=True, eq=False):
    """A decision that waits; `cost` is that of its reward, if it has one already."""

    event: EncodedEvent
    action: int
    probability: float
    deadline: float
    cost: float | None = None


def check_limits(limit: object, time_to_live: object) -> None:
    """Reject an invalid number of decisions, or an invalid time for which they wait."""
    if isinstance(limit, bool) or not isinstance(limit, Integral) or not 1 <= int(limit) < 2**63:
        raise OptionError(
            f"max_pending cannot be {short_repr(limit)}; it takes a whole number of decisions, at least 1"
        )
    seconds = plain(time_to_live) if isinstance(time_to_live, Real) else None
    if seconds is None or not (0 < seconds <= sys.float_info.max or seconds == math.inf):
        raise OptionError(
            f"time_to_live cannot be {short_repr(time_to_live)}; it takes a number of seconds above 0"
        )


class Pending:
    """The decisions that wait, oldest first. The caller holds a lock.

    Examples
    --------
    >>> from onlineauto.formats.mappings.encoded_event import EncodedEvent
    >>> now = 0.0
    >>> table = Pending(limit=100, time_to_live=60.0, clock=lambda: now)
    >>> table.add("one", EncodedEvent({"user": "tom"}, [{"article": "politics"}]), 0, 1.0)
    >>> now = 61.0
    >>> table.pop_expired().event.mapping(), table.pop_expired(), table.expired
    ({'context': {'user': 'tom'}, 'actions': [{'article': 'politics'}]}, None, 1)
    >>> table.find("one")
    Traceback (most recent call last):
        ...
    onlineauto.errors.InputError: event 'one' has expired: it waited longer than 60 seconds, or too many did
    """

    def __init__(
        self, *, limit: int, time_to_live: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limit, self.time_to_live, self.expired = limit, time_to_live, 0
        self._clock = clock
        self._now = -math.inf
        self._ended: Finished[Literal["learnt", "expired"]] = Finished()
        self._fill([])

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes for a copy, with deadlines relative to now, since clocks differ."""
        return vars(self) | {"_waiting": self._rows(-self._clock())}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes of a copy."""
        vars(self).update(state)
        self._fill(state["_waiting"])

    @property
    def clock(self) -> Callable[[], float]:  # noqa: D102
        return self._clock

    @clock.setter
    def clock(self, clock: Callable[[], float]) -> None:
        rows, self._clock = self._rows(-self._clock()), clock
        self._fill(rows)

    def packed(self) -> bytes:
        """Return the decisions for a file, with deadlines relative to now."""
        return zlib.compress(msgspec.msgpack.encode(self._rows(-self._clock()), enc_hook=_encode), 1)

    def unpack(self, packed: bytes) -> None:
        """Restore a result of `packed`; raise `ValueError` if it is none."""
        kind, parts = list[tuple[str, PendingDecision]], tuple[dict[Any, Any], list[Any]]
        decoder = msgspec.msgpack.Decoder(
            kind, dec_hook=lambda _, value: EncodedEvent(*msgspec.convert(value, parts))
        )
        try:
            rows = decoder.decode(zlib.decompress(packed))
        except (zlib.error, msgspec.MsgspecError) as error:
            raise ValueError(f"the decisions that wait are malformed: {error}") from None
        if not all(0 <= row.action < len(row.event.actions) and row.probability > 0 for _, row in rows):
            raise ValueError("a decision that waits has no such action, or no probability")
        self._fill(rows)

    def _rows(self, seconds: float) -> list[tuple[str, PendingDecision]]:
        """Return the ids and decisions, the oldest first, with deadlines `seconds` later."""
        items = self._waiting.items()
        return [(key, replace(decision, deadline=decision.deadline + seconds)) for key, decision in items]

    def _fill(self, rows: list[tuple[str, PendingDecision]]) -> None:
        """Let decisions wait whose deadlines are relative to now."""
        self._waiting, now = WaitingDecisions(_deadline_of, self._ended), self._clock()
        for key, decision in rows:
            waiting = replace(decision, deadline=decision.deadline + now)
            self._waiting.add(key, waiting, wait=self.time_to_live)

    def __len__(self) -> int:
        """Return the number of waiting decisions."""
        return len(self._waiting)

    def __contains__(self, event_id: str) -> bool:
        """Return whether a decision waits."""
        return self._waiting.get(event_id) is not None

    def add(
        self, event_id: str, event: EncodedEvent, action: int, probability: float, *, new: bool = False
    ) -> None:
        """Add a decision, with an id of which no decision waits; a `new` id was never used before."""
        self._now = now = self._clock()
        decision = PendingDecision(event, action, probability, now + self.time_to_live)
        begin = self._waiting.add if new else self._waiting.begin
        begin(event_id, decision, wait=self.time_to_live)

    def find(self, event_id: str) -> PendingDecision:
        """Return a waiting decision."""
        self._now = now = self._clock()
        decision = self._waiting.get(event_id)
        if decision is None or decision.deadline <= now or decision.cost is not None:
            raise InputError(self._reason(event_id, decision))
        return decision

    def settle(self, event_id: str, cost: float) -> None:
        """Set the cost with which a waiting decision is learnt once it has waited."""
        decision = self._waiting.get(event_id)
        assert decision is not None
        self._waiting.replace(event_id, replace(decision, cost=cost))

    def end(self, event_id: str) -> None:
        """Remove a decision, because it was learnt."""
        self._waiting.end(event_id, "learnt", deadline=math.inf, most=self.limit)

    @property
    def overdue(self) -> bool:
        """True if a decision may have expired when `add` or `find` last read the clock."""
        return self._waiting.earliest <= self._now or len(self._waiting) > self.limit

    def pop_expired(self) -> PendingDecision | None:
        """Remove a decision that has waited and return it; None if there is none."""
        self._now = self._clock()
        due = self._waiting.pop_due(math.inf if len(self._waiting) > self.limit else self._now)
        event_id, decision = next(due, ("", None))
        if decision is not None:
            self.expired += decision.cost is None
            how: Literal["learnt", "expired"] = "expired" if decision.cost is None else "learnt"
            self._waiting.end(event_id, how, deadline=math.inf, most=self.limit)
        return decision

    def _reason(self, event_id: str, decision: PendingDecision | None) -> str:
        """Return the reason why a decision cannot be learnt."""
        if decision is not None and decision.cost is not None:
            return f"event {event_id!r} has its reward already, and is learnt once it has waited"
        how = "expired" if decision is not None else self._ended.get(event_id)
        if how == "learnt":
            return f"event {event_id!r} was learnt already: a decision is learnt once"
        if how == "expired":
            return (
                f"event {event_id!r} has expired: it waited longer than {self.time_to_live:g} seconds, or "
                "too many did"
            )
        return (
            f"no decision {event_id!r} waits for its reward: it was not ranked by this model since it was "
            "made or loaded; to learn a decision of another model, give its context, actions, action and "
            "probability; for decisions to wait across a restart, save a model with learn_at='wait', or log "
            "decisions and fit the log"
        )


def _encode(event: EncodedEvent) -> msgspec.Raw:
    values = event.context, event.actions
    if event.data is not None:  # its types are built-in ones, or have a buffer
        with suppress(OverflowError, TypeError):
            return msgspec.Raw(msgspec.msgpack.encode(values))
    return msgspec.Raw(msgspec.msgpack.encode(_builtin(values)))


def _builtin(value: Any) -> Any:
    """Return the features of a context or of actions as values that MessagePack can have."""
    if isinstance(value, Mapping):
        return {key: _builtin(item) for key, item in value.items()}
    value = plain(value)
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [_builtin(item) for item in value]
    return float(value) if type(value) is int and value.bit_length() > 63 else value


def _deadline_of(decision: PendingDecision) -> float:
    return decision.deadline
