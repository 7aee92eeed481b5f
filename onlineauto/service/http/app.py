"""``application``: the handlers and endpoints of a loop, with the threads for learning and for ticks."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from contextlib import asynccontextmanager
from contextvars import copy_context
from functools import partial, wraps
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

import msgspec

from onlineauto.jit import is_compiling
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, Router
from onlineauto.service.http.page import page_reply
from onlineauto.service.http.personalizer import (
    DateRange,
    LogProperties,
    ModelProperties,
    PolicyContract,
    ServiceConfiguration,
    canonical_path,
    changes_in,
    check_policy,
    configuration_of,
    date_of,
    what_instead,
)
from onlineauto.service.http.routes import ROUTES, openapi_document
from onlineauto.service.http.status import ServiceMetrics, rank_server_status, status_of
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.http.wire import (
    BatchAnswer,
    BatchDecision,
    BodyDecoder,
    Canary,
    Evaluate,
    MetricValue,
    ModelChoice,
    PersonalizerRank,
    PersonalizerReward,
    PersonalizerSlotsRank,
    PersonalizerSlotsReward,
    Problem,
    Rank,
    RawBatch,
    Reply,
    Reward,
    Settings,
    SlotsRank,
    answer_to,
    content_type,
    personalizer_answer,
    personalizer_slots_answer,
    problem,
    reply_to_error,
    slots_answer,
)
from onlineauto.service.learning.evaluate import evaluate_policies
from onlineauto.service.learning.learner import MOST_RECORDS
from onlineauto.service.log.segment_log import RecordsAnswer
from onlineauto.service.loop.loop import Loop
from onlineauto.service.loop.slots import activate_slots, after_all, rank_slots, reward_slots
from onlineauto.service.options import DEFAULT_LOOP, PART_BYTES, RECORDED_BY
from onlineauto.service.ranking import check_cost
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from onlineauto.service.http.endpoint import Request, Waiting
    from onlineauto.service.http.routes import Endpoints
    from onlineauto.service.log.segment_log import Done
    from onlineauto.service.loop.front import Front
    from onlineauto.service.loop.rank_server import RankServer
    from onlineauto.service.loop.slots import SlotsRankRequest
    from onlineauto.service.options import Limits
    from onlineauto.service.ranking import Ranked, RankRequest

_LOG = logging.getLogger("onlineauto.service")
_SWITCHING: Final = 10.0
"""Maximum number of seconds that a request to switch to another model waits until that model ranks."""
_IDLE: Final = 0.1
_BUSY: Final = 0.5
_TICK: Final = 0.25
_BINARY_BYTES: Final = 1 << 28
_FOLLOW: Final = 0.2
_AGAIN: Final = 1.0
_COMPILING: Final = 1.0

_BYTES: Final = content_type("application/octet-stream")
_POSITION_DIGITS: Final = 19
_WATCHERS: Final = 32
_LAG: Final = 60.0
Result = TypeVar("Result")

_RANK = BodyDecoder(Rank)
_PERSONALIZER_RANK = BodyDecoder(PersonalizerRank)
_BATCH = BodyDecoder(RawBatch)
_REWARD = BodyDecoder(Reward)
_PERSONALIZER_REWARD = BodyDecoder(PersonalizerReward)
_SLOTS = BodyDecoder(SlotsRank)
_PERSONALIZER_SLOTS = BodyDecoder(PersonalizerSlotsRank)
_PERSONALIZER_SLOTS_REWARD = BodyDecoder(PersonalizerSlotsReward)
_METRIC = BodyDecoder(MetricValue)
AnyHandlers = TypeVar("AnyHandlers", bound="FrontHandlers")
_NOTHING = Reply(204, headers=((RECORDED_BY[0].encode(), RECORDED_BY[1].encode()),))


def _one_by_one(
    answer: Callable[[AnyHandlers, Request], Reply | None],
) -> Callable[[AnyHandlers, Sequence[Request]], list[Reply | Exception]]:
    """Return a handler of many requests that answers each by `answer`; an error affects its request only."""

    @wraps(answer)
    def answer_all(self: AnyHandlers, requests: Sequence[Request]) -> list[Reply | Exception]:
        replies: list[Reply | Exception] = []
        for request in requests:
            try:
                replies.append(answer(self, request) or _NOTHING)
            except Exception as error:
                replies.append(error)
        return replies

    return answer_all


class FrontHandlers:
    """Answers requests with a front."""

    routes: ClassVar[Sequence[Endpoints]] = ROUTES

    def __init__(self, front: Front, metrics: ServiceMetrics) -> None:
        self.front, self.metrics = front, metrics
        self.stopping = self.abandoned = False
        self.waits_for_compiler = False  # when its thread has to end

    @_one_by_one
    def personalizer_slots(self, request: Request) -> Reply:
        """Rank slots, in Personalizer's format."""
        asked, ranked = self._slots(_PERSONALIZER_SLOTS, request)
        return Reply.json(personalizer_slots_answer(asked, ranked), 201)

    @_one_by_one
    def slots(self, request: Request) -> Reply:
        """Rank slots."""
        return Reply.json(slots_answer(*self._slots(_SLOTS, request)))

    @_one_by_one
    def personalizer_slots_reward(self, request: Request) -> None:
        """Record rewards of slots, in Personalizer's format."""
        slots = _PERSONALIZER_SLOTS_REWARD.decode(request.body).reward
        rewards = [(slot.slot_id, slot.value) for slot in slots]
        reward_slots(self.front, request.path["event_id"], rewards, request.done, key=_key_of(request))

    def personalizer_rank(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank, in Personalizer's format."""
        return self._ranks(
            _PERSONALIZER_RANK, requests, lambda ranked: Reply.json(personalizer_answer(ranked), 201)
        )

    def rank(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank."""
        return self._ranks(_RANK, requests, lambda ranked: Reply.json(answer_to(ranked)))

    @_one_by_one
    def rank_batch(self, request: Request) -> Reply:
        """Rank many times at once; each decision fails alone."""
        decisions, most = _BATCH.decode(request.body).decisions, self.front.limits.decisions
        if not 1 <= len(decisions) <= most:
            message = f"a batch has 1 to {most} decisions, not {len(decisions)}"
            raise RefusedError(message, status=413 if decisions else 400)
        all_done = after_all(len(decisions) + 1, request.done)
        unit = request.headers.get("unit-id")
        rows = []
        for answer in self._decide(_RANK, [(raw, unit, all_done) for raw in decisions], set()):
            if isinstance(answer, Exception):
                refused = reply_to_error(answer, "rank_batch")
                error = msgspec.json.decode(refused.body, type=Problem).error
                rows.append(BatchDecision(refused.status, error=error))
                all_done(None)  # this decision has no record in the log
            else:
                rows.append(BatchDecision(200, answer_to(answer)))
        all_done(None)
        return Reply.json(BatchAnswer(rows))

    @_one_by_one
    def personalizer_reward(self, request: Request) -> None:
        """Record rewards, in Personalizer's format."""
        value = _PERSONALIZER_REWARD.decode(request.body).value
        self.front.reward(request.path["event_id"], value, request.done, key=_key_of(request))

    @_one_by_one
    def metric(self, request: Request) -> None:
        """Record values of metrics."""
        body = _METRIC.decode(request.body)
        event_id, key = _named_by(body, self.front), body.key or _key_of(request)
        self.front.metric(event_id, body.metric, body.value, request.done, key=key)

    @_one_by_one
    def activate(self, request: Request) -> None:
        """Activate decisions."""
        self.record_activation(request.path["event_id"], request.done)

    @_one_by_one
    def slots_activate(self, request: Request) -> None:
        """Activate the deferred slots of events."""
        activate_slots(self.front, request.path["event_id"], request.done, single=False)

    @_one_by_one
    def reward(self, request: Request) -> None:
        """Record rewards."""
        body = _REWARD.decode(request.body)
        event_id, key = _named_by(body, self.front), body.key or _key_of(request)
        value, cost = body.reward, body.cost
        if cost is msgspec.UNSET:
            if value is msgspec.UNSET:
                raise RefusedError("a reward has the member reward, or cost, or both")
            self.record_reward(event_id, value, key, request.done)
            return
        check_cost(cost, "the cost")
        done = request.done if value is msgspec.UNSET else after_all(2, request.done)
        if value is not msgspec.UNSET:
            self.front.check_queue(3)  # an activation too; all are recorded, or none
            self.record_reward(event_id, value, key, done)
        self.front.cost(event_id, cost, done)

    def record_reward(self, event_id: str, value: float, key: str, done: Done) -> None:
        """Record a reward of a decision."""
        self.front.reward(event_id, value, done, key=key)

    def record_activation(self, event_id: str, done: Done) -> None:
        """Activate a decision, or all its deferred slots."""
        activate_slots(self.front, event_id, done, single=True)

    async def close(self) -> None:
        """End the work in the background."""

    async def alive(self, _request: Request) -> Reply:
        """Report whether the process answers, writes its log and learns."""
        reason = self.front.stop_reason  # not that a model cannot be saved: a restart would lose it
        if reason:
            return Reply.text(f"no: {reason}\n", 503)
        return Reply.text("ok\n")

    async def prometheus(self, _request: Request) -> Reply:
        """Return the metrics."""
        return Reply(200, self.metrics.text(), content_type("text/plain; version=0.0.4; charset=utf-8"))

    async def openapi(self, _request: Request) -> Reply:
        """Describe the endpoints."""
        return Reply.json(openapi_document(type(self), self.routes))

    def _ranks(
        self,
        decoder: BodyDecoder[Rank] | BodyDecoder[PersonalizerRank],
        requests: Sequence[Request],
        reply: Callable[[Ranked], Reply],
    ) -> list[Reply | Exception]:
        """Rank all readable requests at once; return a reply or an error for each."""
        asked = [(request.body, request.headers.get("unit-id"), request.done) for request in requests]
        answers = self._decide(decoder, asked)
        return [answer if isinstance(answer, Exception) else reply(answer) for answer in answers]

    def _decide(
        self,
        decoder: BodyDecoder[Rank] | BodyDecoder[PersonalizerRank],
        requests: Sequence[tuple[bytes | msgspec.Raw, str | None, Done]],
        ids: set[str] | None = None,
    ) -> list[Ranked | Exception]:
        """Decide all readable bodies at once, each with the unit that its header names.

        `ids` collects the ids of the decisions of a batch, of which none may have the id of an earlier one.
        """
        items: list[tuple[RankRequest, Done] | Exception] = []
        for body, unit, done in requests:
            try:
                rank_request = decoder.decode(body).rank_request(_new_id)
                event_id = rank_request.event_id
                if ids is not None and event_id in ids:
                    message = (
                        f"event {event_id[:200]!r} is twice in this batch: each decision needs its own id"
                    )
                    raise RefusedError(message, status=409)
                if ids is not None:
                    ids.add(event_id)
                items.append((rank_request._replace(unit=unit) if unit else rank_request, done))
            except Exception as error:
                items.append(error)
        answers = iter(self.front.rank_all([item for item in items if not isinstance(item, Exception)]))
        return [item if isinstance(item, Exception) else next(answers) for item in items]

    def _slots(
        self,
        decoder: BodyDecoder[SlotsRank] | BodyDecoder[PersonalizerSlotsRank],
        request: Request,
    ) -> tuple[SlotsRankRequest, list[Ranked]]:
        """Rank the slots of a request, and return it with an answer for each slot."""
        asked = decoder.decode(request.body).rank_request(_new_id)
        asked = asked._replace(unit=request.headers.get("unit-id") or asked.unit)
        return asked, rank_slots(self.front, asked, request.done)

    def _readiness(self, stale: str) -> Reply:
        """Return whether ranks can be answered, and why the model is stale, if it is."""
        if self.stopping or not self.front.writable:
            why = "the service stops" if self.stopping else self.front.trouble
            return Reply.text(f"no: {why}\n", 503)
        return Reply.text(f"stale: {stale}\n" if stale else "ready\n")


class RankServerHandlers(FrontHandlers):
    """Answers the requests that a rank server receives."""

    front: RankServer

    async def status(self, _request: Request) -> Reply:
        """Return the state of the rank server."""
        return Reply.json(rank_server_status(self.front))

    async def ready(self, _request: Request) -> Reply:
        """Report whether ranks can be answered, and whether the learner is available."""
        stale = "" if self.front.failed is None else "the learner is away"
        return self._readiness(stale)


def _key_of(request: Request) -> str:
    """Return the key in the header of a request, by which a repetition is recognised."""
    return request.headers.get("idempotency-key", "")


def _named_by(body: Reward | MetricValue, front: Front) -> str:
    """Return the id of the decision, or of the decision of a slot, that a body names."""
    return front.slot_decision(body.event_id, body.slot) if body.slot else body.event_id


def _new_id() -> str:
    return secrets.token_hex(16)


class Handlers(FrontHandlers):
    """Answers requests with a loop."""

    def __init__(self, loop: Loop, metrics: ServiceMetrics) -> None:
        super().__init__(loop, metrics)
        self.loop = loop
        self.watchers = 0
        self.evaluating = asyncio.Lock()
        self._model: tuple[str, bytes] = ("", b"")

    async def status(self, _request: Request) -> Reply:
        """Return the state of the service."""
        return Reply.json(status_of(self.loop, points=True))

    async def experiment(self, _request: Request) -> Reply:
        """Return the state of the experiment: the lift over the control arm, the guardrails, the alarms."""
        return Reply.json(self.loop.experiment)

    async def settings(self, request: Request) -> Reply:
        """Change the mode, and the settings of the join."""
        changes = msgspec.to_builtins(BodyDecoder(Settings).decode(request.body))
        return Reply.json(await _recorded(partial(self.loop.change, changes)))

    async def model(self, request: Request) -> Reply:
        """Return the model that ranks, unless the client has it."""
        name = self.loop.learner.name
        if request.headers.get("if-none-match") == f'"{name}"':
            return Reply(304, headers=_tag_of(name))
        if self._model[0] != name:
            self._model = await asyncio.to_thread(self.loop.model)
        name, content = self._model
        return Reply(200, content, _tag_of(name) + _BYTES)

    async def put_model(self, request: Request) -> Reply:
        """Add a model to the history, and switch to it."""
        name = f"put-{secrets.token_hex(6)}"
        await self._switch_to(name, request.body)
        return Reply.json(ModelChoice(name), 201)

    async def configuration(self, _request: Request) -> Reply:
        """Return the settings, in Personalizer's format."""
        return Reply.json(configuration_of(self.loop))

    async def configure(self, request: Request) -> Reply:
        """Change the settings, in Personalizer's format."""
        changes = changes_in(BodyDecoder(ServiceConfiguration).decode(request.body), self.loop)
        await _recorded(partial(self.loop.change, changes))
        return Reply.json(configuration_of(self.loop))

    async def policy(self, _request: Request) -> Reply:
        """Return the options of the model, in Personalizer's format."""
        return Reply.json(PolicyContract(self.loop.app, self.loop.join.settings.options))

    async def set_policy(self, request: Request) -> Reply:
        """Check that a policy of Personalizer has the options of the model."""
        check_policy(BodyDecoder(PolicyContract).decode(request.body), self.loop.join.settings)
        return await self.policy(request)

    async def export_model(self, _request: Request) -> Reply:
        """Return the model whole, so that another service with the same options can learn on from it."""
        _, content = await asyncio.to_thread(partial(self.loop.model, learns=True))
        return Reply(200, content, _BYTES)

    async def import_model(self, request: Request) -> Reply:
        """Switch to a model of `export_model`."""
        await self._switch_to(f"put-{secrets.token_hex(6)}", request.body)
        return Reply(204)

    async def reset_model(self, _request: Request) -> Reply:
        """Switch to a model that has learnt nothing."""
        content = await asyncio.to_thread(self.loop.empty_model)
        await self._switch_to(f"put-reset-{secrets.token_hex(6)}", content)
        return Reply(204)

    async def model_properties(self, _request: Request) -> Reply:
        """Return the times of the first record and of the latest model, in Personalizer's format."""
        first, _ = await asyncio.to_thread(self.loop.log_times)
        latest = max(self.loop.published.time, first)
        return Reply.json(ModelProperties(*map(date_of, (first, latest))))

    async def log_properties(self, _request: Request) -> Reply:
        """Return the times of the first and the last record of the log, in Personalizer's format."""
        times = await asyncio.to_thread(self.loop.log_times)
        return Reply.json(LogProperties(DateRange(*map(date_of, times))))

    async def _switch_to(self, name: str, content: bytes) -> None:
        """Add a model to the history, and switch to it."""
        await _recorded(partial(self.loop.put_model, name, content), in_thread=True)
        await self._published()

    async def _published(self) -> None:
        """Wait until the model of the latest switch ranks, for a few seconds at most."""
        end = time.monotonic() + _SWITCHING
        while self.loop.is_switching and not self.stopping and time.monotonic() < end:
            await asyncio.sleep(_IDLE / 2)

    async def records(self, request: Request) -> Reply:
        """Take over records of the log of a rank server."""
        source, position = request.path["source"], request.path["position"]
        if not position.isascii() or not position.isdigit() or len(position) > _POSITION_DIGITS:
            raise RefusedError(f"a position is a number of bytes, not {position[:40]!r}")
        taken_over = partial(self.loop.take_over, source, int(position), request.body)
        return Reply.json(RecordsAnswer(await _recorded(taken_over)))

    async def models(self, _request: Request) -> Reply:
        """List the models of the history."""
        return Reply.json(self.loop.learner.models.all())

    async def keep_model(self, _request: Request) -> Reply:
        """Write the current model into the history."""
        return Reply.json(ModelChoice(await asyncio.to_thread(self.loop.keep_model)), 201)

    async def use_model(self, request: Request) -> Reply:
        """Switch to a model of the history."""
        body = BodyDecoder(ModelChoice).decode(request.body)
        await _recorded(partial(self.loop.use_model, body.name))
        await self._published()
        return Reply.json(body)

    async def start_canary(self, request: Request) -> Reply:
        """Let a model of the history decide for a share of the units; a share of 0 ends the canary."""
        body = BodyDecoder(Canary).decode(request.body)
        await _recorded(partial(self.loop.start_canary, body.name, body.share), in_thread=True)
        return Reply.json(body)

    async def evaluate(self, request: Request) -> Reply:
        """Estimate the values of policies over the whole log."""
        policies = BodyDecoder(Evaluate).decode(request.body).policies
        if self.evaluating.locked():
            raise RefusedError("another evaluation runs", status=429, retry_after=10.0)
        async with self.evaluating:
            log, app = self.loop.log, self.loop.learner
            return Reply.json(
                await asyncio.to_thread(evaluate_policies, log, policies, app.workspace.configuration)
            )

    async def explanation(self, _request: Request) -> Reply:
        """Explain the scores of the latest event by today's model; see `onlineauto.interop.explanation`."""
        return Reply.json(await asyncio.to_thread(self.loop.explain))

    async def ready(self, _request: Request) -> Reply:
        """Report whether ranks can be answered, and whether learning continues."""
        loop = self.loop
        if not loop.caught_up:
            return Reply.text("no: the log is being learnt\n", 503)
        lag = loop.lag_seconds()
        lags = f"the learner is {lag:.0f} seconds behind the log" if lag > _LAG else ""
        return self._readiness(loop.trouble or lags or "; ".join(loop.outages))

    async def page(self, _request: Request) -> Reply:
        """Return the live page."""
        return page_reply()

    async def watch(self, _request: Request) -> Reply:
        """Send the status every second, as server-sent events."""
        if self.watchers >= _WATCHERS:
            raise RefusedError(f"{_WATCHERS} pages watch already", status=429, retry_after=30.0)
        headers = (*content_type("text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"))
        return Reply(200, headers=headers, stream=self._statuses())

    async def _statuses(self) -> AsyncGenerator[bytes, None]:
        self.watchers += 1
        try:
            while not self.stopping:
                yield b"data: %b\n\n" % msgspec.json.encode(status_of(self.loop, points=True))
                await asyncio.sleep(1.0)
        finally:
            self.watchers -= 1


def _tag_of(name: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"etag", f'"{name}"'.encode()),)


async def _recorded(submit: Callable[[Done], Result], *, in_thread: bool = False) -> Result:
    """Return the result of `submit`, which is called with a callback, once the log has its record."""
    loop = asyncio.get_running_loop()
    future, done = awaited_record()
    if in_thread:
        result = await asyncio.to_thread(submit, lambda error: loop.call_soon_threadsafe(done, error))
    else:
        result = submit(done)
    await future
    return result


def awaited_record() -> tuple[asyncio.Future[None], Done]:
    """Return a future, and the callback that ends it once the log has a record."""
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def done(error: Exception | None) -> None:
        if error is not None and not future.done():
            future.set_exception(RefusedError(f"the log cannot be written: {error}", status=503))
        elif not future.done():
            future.set_result(None)

    return future, done


def application(
    front: Loop | RankServer,
    waiting: Waiting,
    *,
    tokens: Tokens | None = None,
    most: int = 1000,
    hosts: Collection[str] = (),
    make_handlers: Callable[[Loop, ServiceMetrics], Handlers] = Handlers,
) -> Application:
    """Return the application of a loop, which learns, or of a rank server, which follows its learner."""
    handlers: FrontHandlers
    if isinstance(front, Loop):
        handlers = make_handlers(front, ServiceMetrics(partial(status_of, front)))
    else:
        handlers = RankServerHandlers(front, ServiceMetrics(partial(rank_server_status, front)))
    guard = RequestGuard(
        Tokens() if tokens is None else tokens,
        handlers.metrics.request,
        most=most,
        hosts=hosts,
        loop=DEFAULT_LOOP,
    )
    endpoints = endpoints_of(handlers, guard, front.limits)
    return Application(endpoints, handlers, partial(working, front, handlers, waiting))


def endpoints_of(
    handlers: FrontHandlers, guard: RequestGuard, limits: Limits
) -> dict[str, dict[str, Endpoint]]:
    """Return the endpoints of all routes that have a handler, by path and method."""
    batch = RequestBatch(handlers.front.together, guard.room)
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for route in handlers.routes:
        if hasattr(handlers, route.name):
            endpoints.setdefault(route.path, {})[route.method] = Endpoint(
                guard,
                getattr(handlers, route.name),
                name=route.name,
                scope=route.scope,
                body_bytes=body_bytes_of(route, limits.body_bytes),
                batch=batch,
            )
    return endpoints


def body_bytes_of(route: Endpoints, most: int) -> int:
    """Return the maximum size of the body of a request, if that of a rank has `most` bytes."""
    return _BINARY_BYTES if route.body is bytes else route.bodies * most


@asynccontextmanager
async def working(front: Loop | RankServer, handlers: FrontHandlers, waiting: Waiting) -> AsyncIterator[None]:
    """Check the disk, let a front learn, or follow, and write ticks; close it at the end."""
    stop = threading.Event()
    work = partial(_learn, front, stop) if isinstance(front, Loop) else partial(_follow, front, stop)
    target = copy_context().run  # so that its log records name the loop
    thread = threading.Thread(target=target, args=(work,), name="onlineauto-work", daemon=True)
    front.check_disk()
    waiting.start()
    thread.start()
    ticking = asyncio.create_task(_tick(front))
    try:
        yield
    finally:
        handlers.stopping = True
        ticking.cancel()
        await handlers.close()
        stop.set()
        await asyncio.to_thread(thread.join if handlers.waits_for_compiler else partial(_end, thread))
        waiting.stop()
        handlers.abandoned = thread.is_alive()  # in the compiler, which nothing interrupts
        await asyncio.to_thread(front.leave if handlers.abandoned else front.close)


class Application(Router):
    """All endpoints of the service, and the threads that run while connections are served."""

    hint = "; /openapi.json lists the endpoints"

    def __init__(
        self,
        endpoints: Mapping[str, Mapping[str, Endpoint]],
        handlers: FrontHandlers,
        running: Callable[[], AbstractAsyncContextManager[None]],
    ) -> None:
        super().__init__(endpoints, handlers.metrics.connections, running)
        self._handlers = handlers

    def stop(self) -> None:
        """End the streams, and report the service as not ready; requests are still answered."""
        self._handlers.stopping = True

    @property
    def is_abandoned(self) -> bool:
        """True if a thread still waits for the compiler, so that the process has to end without it."""
        return self._handlers.abandoned

    def canonical_path(self, path: str) -> str:
        """Return the path under which an endpoint is declared: Personalizer's versions are alike."""
        return canonical_path(path)

    def missing(self, method: str, path: str, methods: Mapping[str, Endpoint]) -> Reply:
        """Return the answer to a request for which there is no endpoint, also of a call of Personalizer."""
        instead = what_instead(method, canonical_path(path))
        if instead:
            return problem(f"{method} {path} is not here: {instead}", 501)
        return super().missing(method, path, methods)


def _end(working: threading.Thread) -> None:
    """Wait until a thread has ended, but not for the compiler."""
    working.join(_COMPILING)
    while working.is_alive() and not is_compiling():
        working.join(0.1)


def _learn(loop: Loop, stop: threading.Event) -> None:
    """Learn until `stop` is set; the loop logs a failure and tries again."""
    busy = min(max(loop.every.publish, _IDLE), _BUSY)
    while not stop.is_set():
        try:
            taken = loop.learn()
        except Exception:
            taken = 0
        if taken < MOST_RECORDS:  # a step costs as much as a hundred decisions: it takes more of them at once
            stop.wait(busy if taken else _IDLE)


def _follow(rank_server: RankServer, stop: threading.Event) -> None:
    """Follow the learner until `stop` is set; ask again while the learner is away."""
    away = False
    while not stop.is_set():
        exchanged = rank_server.follow()
        if away != (rank_server.failed is not None):
            away = not away
            message = (
                f"the learner cannot be followed: {rank_server.failed}"
                if away
                else "the learner is available again"
            )
            _LOG.warning(message, extra={"event": "learner", "away": away})
        if not exchanged or rank_server.behind < PART_BYTES:  # many records cost little more than one
            stop.wait(_AGAIN if away else _FOLLOW)


async def _tick(front: Front) -> None:
    """Write ticks into the log."""
    while True:
        await asyncio.sleep(_TICK)
        try:
            front.tick()
        except Exception:
            _LOG.exception("a tick has failed", extra={"event": "failed", "endpoint": "tick"})
