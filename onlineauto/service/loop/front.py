"""``Front``: decides, accepts rewards, and writes both into a log, with the model that was published last."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from onlineauto.errors import InputError, OptionError
from onlineauto.formats.decisions.dsjson import LogRecord, stamp
from onlineauto.formats.lines.line_reader import NotOneEventError
from onlineauto.interop.explanation import as_rewards, explain
from onlineauto.service.learning.experiment import (
    CANARY,
    CONTROL,
    REWARD,
    TREATMENT,
    arm_of,
    bucket_of,
    name_of,
)
from onlineauto.service.log.segment_log import GroupCommit, read_record, sealed
from onlineauto.service.loop.decision_costs import DecisionCosts
from onlineauto.service.loop.slots import DeferredSlots, SlotNames, slot_id
from onlineauto.service.loop.telemetry import record_spans
from onlineauto.service.ranking import (
    Ranked,
    RankRequest,
    answer_of,
    certain_choice,
    check_cost,
    choose,
    context_of,
    line_of,
    path_at,
    read_answer,
    seed_of,
    without_costs,
)
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import AbstractContextManager

    from onlineauto.service.join.join import Join
    from onlineauto.service.join.settings import JoinSettings
    from onlineauto.service.learning.learner import Published
    from onlineauto.service.log.segment_log import Done, SegmentLog
    from onlineauto.service.options import Limits

_LOG = logging.getLogger("onlineauto.service")

_HEAD: Final = b'{"c":'
_NOW: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""A placeholder for the time of a record, if the time is passed separately."""
_LAST: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
_DAY: Final = 86400.0
_LONGEST: Final = 366 * _DAY
"""Seconds without a record for which a process trusts its clock."""
_LEAD: Final = 60.0
"""A change of the machine's clock by this number of seconds is logged."""
_BLOCK: Final = 128
"""Number of ranks from which one block takes less time than single events."""
WAITING: Final = "decisions wait for their rewards"
"""Names what there is too much of, in the error that rejects a rank."""

_SLEW: Final = 1.0
_ALWAYS: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that also counts while the machine sleeps, where there is such a clock."""


class SteadyClock:
    """Returns the seconds since 1970, based on the machine's clock at the start of the process.

    It follows the machine's clock while that clock is adjusted by less than a second at a time. If the clock
    is set, this clock continues unchanged until the process ends.

    >>> clock = SteadyClock()
    >>> clock() <= clock(), abs(clock.lead) < 60
    (True, True)
    """

    def __init__(self) -> None:
        self._offset = time.time() - time.clock_gettime(_ALWAYS)
        self._latest = 0.0

    def __call__(self) -> float:
        """Return the time, which never runs back."""
        steady = time.clock_gettime(_ALWAYS)
        offset = time.time() - steady
        if abs(offset - self._offset) < _SLEW:
            self._offset = offset
        self._latest = max(self._latest, steady + self._offset)
        return self._latest

    @property
    def lead(self) -> float:
        """The seconds by which the machine's clock was set ahead since the process began."""
        return time.time() - time.clock_gettime(_ALWAYS) - self._offset


class Front:
    """Ranks, rewards and activates with one log. Any number of threads may call its methods."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        log: SegmentLog,
        join: Join,
        published: Published,
        *,
        limits: Limits,
        app: str,
        namespaces: Iterable[str],
        clock: Callable[[], float] | None,
        deliver: Callable[[Sequence[Done], Exception | None], object],
    ) -> None:
        self.folder, self.log, self.join, self.published = Path(folder), log, join, published
        self.limits, self.app, self.clock = limits, app, clock or SteadyClock()
        self._lead = 0.0  # by how much the machine's clock was set, when last logged
        self._latest = self.clock()  # the time of the latest record, or of this start
        self._namespaces = set(namespaces if limits.only is None else limits.only)
        self._lock = threading.Lock()
        self._last: tuple[RankRequest, bytes, str] | None = None  # not its model, which may be replaced
        self._costs = DecisionCosts(log, join)
        self._commit = GroupCommit(log, deliver=deliver)
        self.canary: Published | None = None
        self.deferred_slots, self.slot_names = DeferredSlots(join), SlotNames()
        record_spans(self)

    def rank(self, request: RankRequest, done: Done) -> Ranked:
        """Decide, and return the answer; it may be sent once `done` is called."""
        answer = self.rank_all([(request, done)])[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def rank_all(self, requests: Sequence[tuple[RankRequest, Done]]) -> list[Ranked | Exception]:
        """Decide several requests like `rank`; return the answers, with errors in place of failed ones.

        Each step is done for all requests before the next step, so that its code and tables stay in the
        processor's cache. That takes half the time.
        """
        settings, published = self.join.settings, self.published
        epoch = settings.epoch + published.replaced
        rankings = [Ranking(request, done, settings.mode, published, epoch) for request, done in requests]
        _step(self._read, rankings)
        if settings.mode == "online" and (settings.control or settings.canary_share):
            _step(partial(self._assign, settings), rankings)
        if settings.budget is not None:
            _step(partial(self._costs.price, settings.budget, self.join.pacing.price), rankings)
        _predict_many(rankings)
        _step(_predict, rankings)
        _step(self._choose, rankings)
        with self._lock:
            _step(self._log, rankings)
        if (last := next((one for one in reversed(rankings) if one.error is None), None)) is not None:
            self._last = last.request, last.context, last.arm
        return [ranking.answer if ranking.error is None else ranking.error for ranking in rankings]

    def explain(self) -> dict[str, Any]:
        """Return which features and members move the rewards that the model predicts for the latest event."""
        if self._last is None:
            raise RefusedError("no decision was made since the start", status=404)
        (request, context, arm), canary = self._last, self.canary
        published = canary if arm == CANARY and canary is not None else self.published
        try:
            explanation = as_rewards(explain(published.predictor, _HEAD + context + b"}\n"))
        except OptionError as error:
            raise RefusedError(str(error), status=404) from None
        for row, name in zip(explanation["actions"], request.ids, strict=True):
            row["action_id"] = name
        return {"event_id": request.event_id, "model": published.name} | explanation

    def check(self, request: RankRequest) -> None:
        """Check that a request can be answered."""
        context_of(request, self.limits, self._namespaces)

    def check_room(self, count: int) -> None:
        """Check that a number of decisions may wait at once."""
        with self._lock:
            self._check_room(self.join.waiting + count - 1, WAITING, self._now())

    def check_queue(self, count: int) -> None:
        """Check that a number of records may wait to be written at once."""
        if self.queued + min(count, max(self.limits.queue, 1)) > self.limits.queue:
            raise RefusedError(f"{self.queued} records wait to be written", status=429, retry_after=1.0)

    def allow_namespace(self, name: str) -> None:
        """Accept a namespace that the service itself adds, beside those that requests may name."""
        self._namespaces.add(name)

    def slot_decision(self, event_id: str, slot: str) -> str:
        """Return the id of the decision of a slot; reject a slot of a known event that no event had."""
        decision = slot_id(event_id, slot)
        if self.slot_names.may_have(slot):
            return decision
        with self._lock:
            now = self.clock()
            if self.join.sources or self.join.find(decision, now) is not None:
                return decision  # of a rank server, a slot may be known before the other slots of its event
            known = self.slot_names.known_of(event_id, self.join, now)
        if known:
            names = ", ".join(map(repr, known))
            raise RefusedError(f"event {event_id!r} has no slot {slot!r}; it has {names}", status=422)
        return decision

    def reward(self, event_id: str, value: float, done: Done, *, key: str = "") -> None:
        """Record a reward of a decision, which need not exist yet; it counts once `done` is called."""
        self._check_value(event_id, value, key, "reward")
        with self._lock:
            bounds = self.join.range_of(event_id)
            if bounds is not None and not bounds[0] <= value <= bounds[1]:
                raise RefusedError(
                    f"the reward {value:g} is not within the reward_range of {bounds[0]:g} to {bounds[1]:g}",
                    status=422,
                )
            self._is_known(event_id, value, key)
            now = self._now()
            self._check_parts(event_id, bool(key), now)
            members = {"RewardId": key} if key else {}
            record = LogRecord("reward", _NOW, event_id, reward=value, key=key)
            self._append("reward", done, now, record, EventId=event_id, RewardValue=value, **members)

    def metric(self, event_id: str, name: str, value: float, done: Done, *, key: str = "") -> None:
        """Record a value of a guardrail's metric for a decision; it counts once `done` is called."""
        self._check_value(event_id, value, key, "value")
        known = [name_of(guarded) for guarded in self.join.settings.guardrails]
        if name not in known or name == REWARD:
            others = ", ".join(guarded for guarded in known if guarded != REWARD) or "none"
            raise RefusedError(f"{name!r} is not a metric of --guardrails, which names {others}")
        with self._lock:
            if not self._is_known(event_id, value, key, name) and key:
                count = self.join.n_metrics(event_id)
                if count >= self.limits.parts:
                    message = f"event {event_id!r} has {count} values of metrics with keys already"
                    raise RefusedError(message, status=429)
            now = self._now()
            self._check_room(0, WAITING, now)
            members = {"RewardId": key} if key else {}
            self._append("metric", done, now, None, EventId=event_id, Metric=name, Value=value, **members)

    def cost(self, event_id: str, cost: float, done: Done) -> None:
        """Record what a decision has cost; the first cost of a decision counts, once `done` is called."""
        self._check_id(event_id)
        check_cost(cost, "the cost")
        with self._lock:
            now = self._now()
            self._check_room(0, WAITING, now)
            assumed = self._costs.assumed(event_id, now)
            self._append("cost", done, now, None, EventId=event_id, Cost=cost, **assumed)

    def excluded_from(self, event_id: str) -> Sequence[int] | None:
        """Return the indices of the actions that an earlier decision has excluded, None without one."""
        with self._lock, suppress(OSError, LookupError, ValueError, InputError):  # as in `_again`
            found = self.join.find(event_id, self.clock())
            if found is not None:
                return read_answer(self.log.line_at(found.position, found.size))[2]
        return None

    def activate(self, event_id: str, done: Done) -> None:
        """Activate a deferred decision, so that it is learnt; this counts once `done` is called."""
        self._check_id(event_id)
        with self._lock:
            now = self._now()
            self._check_parts(event_id, keyed=False, now=now)
            self._append("activate", done, now, EventId=event_id)

    def together(self) -> AbstractContextManager[None]:
        """Write all records of a ``with`` block in one group; only one thread may do this."""
        return self._commit

    def tick(self) -> None:
        """Write a tick if the wait of a decision is over and no other record advances the time."""
        if isinstance(self.clock, SteadyClock) and abs(self.clock.lead - self._lead) > _LEAD:
            self._lead = self.clock.lead
            _LOG.warning(
                "the machine's clock was set; the service continues with its previous time",
                extra={"event": "clock_set", "seconds": round(self._lead, 3)},
            )
        with self._lock:
            if self._commit.failed is None and self.join.is_due(self._now()):
                self._append("tick", ignore_completion)

    def check_disk(self) -> None:
        """Find out whether the log can be written, without a record."""
        with suppress(RefusedError), self.together():
            self._write(b"", ignore_completion)

    def leave(self) -> None:
        """Write queued records before the process ends; the folder is left as after a kill."""
        self._commit.close()

    @property
    def trouble(self) -> str:
        """The reason why the front does not work, or ""."""
        return self.stop_reason

    @property
    def stop_reason(self) -> str:
        """The reason why the front does not decide, or ""."""
        return "" if self._commit.failed is None else f"the log cannot be written: {self._commit.failed}"

    @property
    def writable(self) -> bool:
        """True unless the log cannot be written at present."""
        return self._commit.failed is None

    @property
    def disk_free_share(self) -> float:
        """The free share of the disk of the folder; 0 if it cannot be found out."""
        with suppress(OSError):
            usage = shutil.disk_usage(self.folder)
            return usage.free / max(usage.total, 1)
        return 0.0

    @property
    def queued(self) -> int:
        """The number of records that wait to be written."""
        return len(self._commit)

    @property
    def unwritten(self) -> int:
        """The number of bytes of records that the disk has not confirmed."""
        return self._commit.position - self.log.durable

    @property
    def groups(self) -> int:
        """The number of written groups."""
        return self._commit.groups

    def _now(self) -> float:
        """Return the time for the next record, limited to years of four digits.

        If a day has passed without a record, the process records the counted seconds, because a reader of the
        log could not distinguish a pause from a clock that was set.
        """
        now, latest = self.clock() % _LAST, self._latest
        if _DAY < now - latest <= _LONGEST:
            self._append("tick", ignore_completion, latest)
            self._append("tick", ignore_completion, now, Passed=now - latest)
        return now

    def _again(self, position: int, size: int, one: Ranking) -> Ranked:
        """Return the answer that a decision received before."""
        if position + size > self.log.durable:
            raise RefusedError("this event is being ranked by another request", status=409, retry_after=0.1)
        try:
            line = self.log.line_at(position, size)
            read_record(line)
            answer, *logged = read_answer(line)
        except (OSError, LookupError, ValueError, InputError):  # its segment is removed or damaged
            raise RefusedError(
                "this event was ranked, but the log no longer has its answer", status=409
            ) from None
        wanted = [one.context, one.out, one.request.deferred]
        if logged != wanted:
            names = ("features", "excluded actions", "deferred")
            other = next(
                name for name, *both in zip(names, logged, wanted, strict=True) if both[0] != both[1]
            )
            raise RefusedError(
                f"event {answer.event_id!r} was ranked with other {other}: each decision needs its own id",
                status=409,
            )
        one.done(None)
        return answer

    def _check_id(self, event_id: str) -> None:
        if not event_id or len(event_id.encode()) > self.limits.name_bytes:
            raise RefusedError(f"the event id has 1 to {self.limits.name_bytes} bytes")

    def _check_value(self, event_id: str, value: float, key: str, what: str) -> None:
        """Reject a reward or a value of a metric that is out of range, or whose id or key is too long."""
        self._check_id(event_id)
        if len(key.encode()) > self.limits.name_bytes:
            raise RefusedError(f"the key of a {what} has at most {self.limits.name_bytes} bytes")
        if not abs(value) < 3e38:
            raise RefusedError(f"the {what} {value} is not a finite number that single precision has")

    def _is_known(self, event_id: str, value: float, key: str, metric: str = "") -> bool:
        """Return whether a decision has the value of a key already; reject another value."""
        known = self.join.key_of(event_id, key, metric) if key else None
        if known is not None and known != value:
            what = "value" if metric else "reward"
            raise RefusedError(f"key {key!r} belongs to a {what} of {known} already", status=422)
        return known is not None

    def _check_parts(self, event_id: str, keyed: bool, now: float) -> None:
        """Reject a reward if its decision has too many, since they would take memory without limit."""
        parts = self.join.parts_of(event_id, keyed=keyed)
        if parts >= self.limits.parts:
            raise RefusedError(f"event {event_id!r} has {parts} rewards already", status=429)
        early = 0 if parts < 0 or self.join.is_known(event_id) else self.join.early
        self._check_room(early, "rewards wait for their decisions", now)

    def _check_room(self, pending: int, what: str, now: float) -> None:
        """Reject a record if too many wait."""
        if pending >= self.limits.pending:
            raise RefusedError(
                f"{pending} {what}; no more are accepted (--max_pending {self.limits.pending})",
                status=429,
                retry_after=min(max(self.join.next_end - self.join.time_at(now), 1.0), 60.0),
            )
        if self.queued >= self.limits.queue:
            self.check_queue(1)

    def _read(self, one: Ranking) -> None:
        """Read the costs that actions declare, and encode the context of a request."""
        one.costs, one.request = without_costs(one.request, strict=self.join.settings.budget is not None)
        one.context = context_of(one.request, self.limits, self._namespaces)

    def _assign(self, settings: JoinSettings, one: Ranking) -> None:
        """Assign a request to an arm of the experiment, by the unit that it names."""
        request, canary = one.request, self.canary
        one.bucket = bucket_of(self.app, request.unit or request.event_id)
        one.arm = arm_of(one.bucket, settings)
        if one.arm == CONTROL:
            one.mode = CONTROL
        elif one.arm == CANARY:
            if canary is not None and canary.name == settings.canary:
                one.published = canary
            else:  # a rank server has only the model that learns
                one.arm = TREATMENT

    def _choose(self, one: Ranking) -> None:
        """Choose an action by the model, or choose the baseline."""
        request = one.request
        one.seed = seed_of(self.app, request.event_id)
        one.out = out = [index for index, name in enumerate(request.ids) if name in request.excluded]
        if one.certain >= 0:
            choice = certain_choice(one.certain, len(request.ids))
        elif one.mode == "online":
            choice = choose(one.pmf, out, one.seed)
        else:
            count = len(request.ids)
            choice = certain_choice(next(index for index in range(count) if index not in out), count)
        model = one.published.name
        one.answer = answer_of(choice, request.ids, event_id=request.event_id, model=model)

    def _log(self, one: Ranking) -> None:
        """Submit the line of a decision, or look up the answer that its id received before."""
        request, now = one.request, self._now()
        before = self.join.find(request.event_id, now)
        if before is not None:
            one.answer = self._again(before.position, before.size, one)
            return
        self._check_room(self.join.waiting, WAITING, now)
        deferred = request.deferred
        line = line_of(
            one.answer,
            one.context,
            time=now,
            seed=one.seed,
            mode=one.mode,
            deferred=deferred,
            excluded=one.out,
            arm=one.arm,
            bucket=one.bucket,
            epoch=one.epoch,
            costs=one.costs,
            price=one.price,
            over_budget=one.certain >= 0,
        )
        known = LogRecord("rank", _NOW, request.event_id, deferred=deferred)
        if one.costs:
            known = self._costs.note(known, one, end=self._commit.position + len(line))
        self._submit(line, one.done, now, known)

    def _append(
        self, kind: str, done: Done, now: float | None = None, known: LogRecord | None = None, **members: Any
    ) -> None:
        now = self._now() if now is None else now
        record = {"Type": kind, "Timestamp": stamp(now), **members}
        self._submit(sealed(msgspec.json.encode(record)), done, now, known)

    def _submit(self, line: bytes, done: Done, now: float = 0.0, known: LogRecord | None = None) -> None:
        """Submit a line to the log, and take it into the table."""
        if known is None:  # a line that cannot be parsed must not enter the log
            known = read_record(line)
            now = (known.taken or known.time).timestamp()
        else:
            now = round(now * 1e6) / 1e6  # the line has microseconds
        position = self._write(line, done)
        self._latest = now
        if not known.passed and (jump := self.join.jump_at(now)):
            _LOG.warning(
                "the clock has jumped by %.0f seconds; the waits of decisions are unchanged",
                jump,
                extra={"event": "clock_jump", "seconds": round(jump, 3)},
            )
        self.join.take(known, position, len(line), at=now)
        if known.deferred and known.kind == "rank":
            self.deferred_slots.add(known.event_id)

    def _write(self, line: bytes, done: Done) -> int:
        """Submit a line to the log, and return its position; an empty line waits for the lines before it."""
        try:
            return self._commit.submit(line, done)
        except InputError as error:
            raise RefusedError(str(error), status=503, retry_after=1.0) from None


@dataclass(slots=True, eq=False)
class Ranking:
    """A rank request that is not answered yet."""

    request: RankRequest
    done: Done
    mode: str
    published: Published
    epoch: int
    error: Exception | None = None
    context: bytes = b""
    pmf: Sequence[float] = ()
    arm: str = ""
    bucket: int = 0
    seed: int = 0
    out: Sequence[int] = ()  # the indices of the excluded actions
    costs: Sequence[float | None] = ()  # the cost of each action, where one is known
    price: float | None = None  # the price in force, if the model decides
    certain: int = -1  # the cheapest action, if it costs more than the budget
    answer: Ranked = field(init=False)


def _step(step: Callable[[Ranking], None], turn: Sequence[Ranking]) -> None:
    """Apply a step to all ranks without an error so far; an error affects its own rank only."""
    for one in turn:
        if one.error is None:
            try:
                step(one)
            except Exception as error:
                one.error = error


def _predict_many(turn: Sequence[Ranking]) -> None:
    """Compute the probabilities for all ranks of a turn in one block, if there are enough of one model."""
    if len(turn) < _BLOCK:
        return
    together = [
        one for one in turn if one.error is None and one.published is turn[0].published and not one.price
    ]
    if len(together) < _BLOCK:
        return
    texts = [_HEAD + one.context + b"}\n" for one in together]
    for one, pmf in zip(together, turn[0].published.predictor.predict_texts(texts) or (), strict=False):
        if len(pmf) == len(one.request.ids):  # else `_predict` reports the error
            one.pmf = pmf.tolist()


def _predict(one: Ranking) -> None:
    """Compute the probabilities of the actions, unless they are known."""
    if one.pmf:
        return
    try:
        predictor, event = one.published.predictor, _HEAD + one.context + b"}\n"
        if one.price:
            prices = [one.price * cost for cost in one.costs if cost is not None]
            one.pmf = predictor.predict_priced(event, prices).tolist()
        else:
            one.pmf = predictor.predict(event).tolist()
    except InputError as error:
        problems = error.problems if isinstance(error, NotOneEventError) else ()
        places = [
            f"{path_at(one.context, problem.column - 1 - len(_HEAD), one.request.ids)}: {problem.message}"
            for problem in problems
        ]
        reason = "the features cannot be read"
        raise RefusedError(f"{reason}: {'; '.join(places) or error}", logged=reason) from None
    if len(one.pmf) != len(one.request.ids):
        raise RefusedError(
            f"the features describe {len(one.pmf)} actions, but there are {len(one.request.ids)} ids"
        )


def ignore_completion(error: Exception | None) -> None:
    """Append a record without waiting for the disk; a write error is raised by the next append."""
    del error
