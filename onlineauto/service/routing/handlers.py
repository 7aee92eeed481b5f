"""``RouteHandlers``: the endpoints of a service and those of a proxy in OpenAI's format.

The loop decides which model answers a prompt. A decision waits until feedback comes, from the application or
from the judge; without feedback it is not learnt. If the chosen model fails, the decision is learnt with the
reward of a failure, and the next model by probability answers, from which nothing is learnt.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from onlineauto.service.http.app import Handlers, awaited_record
from onlineauto.service.http.routes import ROUTES, Endpoints
from onlineauto.service.http.wire import JSON, Reply, Reward, content_type
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.route_status import RouteStatus
from onlineauto.service.loop.slots import after_all
from onlineauto.service.ranking import RankRequest, seed_of, uniform_of
from onlineauto.service.refused import RefusedError
from onlineauto.service.routing.endpoints import AUTO
from onlineauto.service.routing.prompt import context_of_prompt, read_prompt
from onlineauto.service.routing.upstream import Completion, RejectedError, Upstream, UpstreamError
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from onlineauto.service.http.endpoint import Request
    from onlineauto.service.http.status import ServiceMetrics
    from onlineauto.service.log.segment_log import Done
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.ranking import Features, Ranked
    from onlineauto.service.routing.endpoints import RouteFile
    from onlineauto.service.routing.prompt import Prompt

_LOG = logging.getLogger("onlineauto.service")
_BODIES: Final = 64
"""Maximum size of a prompt, as a multiple of that of a rank."""
_CONNECTIONS: Final = 1000
"""Number of requests to models at the same time; more of them wait within their time limit."""
_JUDGING: Final = 8
"""Number of answers that are judged at the same time."""
_WAITING: Final = 256
"""Number of answers that are or wait to be judged."""
_MOST_GRADED: Final = 20_000
"""Number of characters of a prompt, and of an answer, that the judge reads."""
_MOST_UNLEARNT: Final = 100_000
"""Number of decisions of which nothing is learnt that are remembered: their feedback is of other models."""
_COUNTS: Final = "route.json"
"""The name of the file of what the models have done, in the folder of the service."""
_SAVE: Final = 5.0
"""Seconds between two writes of this file."""
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_FIELD: Final = re.compile(r"\{(prompt|answer)\}")
_FIELDS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class _Route(NamedTuple):
    """How a request is answered: the models to ask in order, and the decision, unless one was asked for."""

    prompt: Prompt
    path: str
    order: Sequence[str]
    decision: Ranked | None
    recorded: asyncio.Future[None] | None

    def about(self, model: str) -> dict[str, Any]:
        """Return the member ``onlineauto`` of an answer."""
        chosen = self.decision is None or self.decision.ids[0] == model
        return {
            "event_id": None if self.decision is None else self.decision.event_id,
            "model": model,
            "fallback": not chosen,
        }


class RouteHandlers(Handlers):
    """Answers prompts with the models of a file, beside the requests of a service."""

    routes: ClassVar[Sequence[Endpoints]] = (
        Endpoints("POST", "/v1/chat/completions", "chat", "rank", dict, dict, bodies=_BODIES),
        Endpoints("POST", "/v1/completions", "complete", "rank", dict, dict, bodies=_BODIES),
        Endpoints("POST", "/v1/feedback", "feedback", "reward", Reward, None, 204),
        Endpoints("GET", "/v1/models", "names", "rank", None, dict),
        *(route._replace(path="/v1/models/history") if route.name == "models" else route for route in ROUTES),
    )
    feedback = Handlers.reward

    def __init__(
        self, loop: Loop, metrics: ServiceMetrics, *, content: RouteFile, keys: Mapping[str, str]
    ) -> None:
        super().__init__(loop, metrics)
        self.content = content
        limits = httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=256)
        self._http = httpx.AsyncClient(limits=limits, follow_redirects=False)
        self.upstreams = {
            name: Upstream(name, endpoint, keys.get(name, ""), self._http)
            for name, endpoint in content.models.items()
        }
        self._ids = list(content.routed)
        self._features: list[Features] = [
            {"model": msgspec.Raw(msgspec.json.encode({name: 1, **endpoint.features}))}
            for name, endpoint in content.routed.items()
        ]
        self._has_prices = any(model.input_price or model.output_price for model in content.routed.values())
        for namespace in ("form", "prompt", "vector", "model"):
            self.front.allow_namespace(namespace)
        self.counts = loop.route = self._read_counts()
        self._saved = b""  # The content of the file.
        self._saving: asyncio.Task[None] | None = None
        self._unlearnt: dict[str, None] = {}  # The latest decisions of which nothing is learnt.
        self._answering: set[str] = set()  # The ids that clients have given to prompts without an answer yet.
        self._grading: set[asyncio.Task[None]] = set()
        self._graders = asyncio.Semaphore(_JUDGING)

    async def chat(self, request: Request) -> Reply:
        """Answer a chat in OpenAI's format with the model that is picked or asked for."""
        return await self._answer(request, "/chat/completions")

    async def complete(self, request: Request) -> Reply:
        """Complete a text in OpenAI's format with the model that is picked or asked for."""
        return await self._answer(request, "/completions")

    async def names(self, _request: Request) -> Reply:
        """List the models in OpenAI's format; ``auto`` is picked."""
        rows = [
            {"id": name, "object": "model", "created": 0, "owned_by": "onlineauto"}
            for name in (AUTO, *self.upstreams)
        ]
        return Reply.json({"object": "list", "data": rows})

    def record_reward(self, event_id: str, value: float, key: str, done: Done) -> None:
        """Record a reward of a decision, and activate the decision, since it has feedback.

        Feedback on another model's answer is ignored if the failure of the chosen one is not learnt.
        """
        if event_id in self._unlearnt:
            done(None)
            return
        part = after_all(2, done)
        self.front.reward(event_id, value, part, key=key)
        self.front.activate(event_id, part)

    async def close(self) -> None:
        """End the grading, close the connections to the models, and write the counts."""
        for task in (*self._grading, *filter(None, [self._saving])):
            task.cancel()
        await asyncio.gather(*self._grading, return_exceptions=True)
        await self._http.aclose()
        self._save_counts()

    def _read_counts(self) -> RouteStatus:
        """Return the counts of earlier processes, for the models that are configured now."""
        path, counts = self.loop.folder / _COUNTS, RouteStatus(models=[])
        try:
            if path.exists():
                counts = msgspec.json.decode(path.read_bytes(), type=RouteStatus)
        except (OSError, msgspec.MsgspecError) as error:
            _LOG.error(
                "%s cannot be read, and the counts begin at 0: %s", path, error, extra={"event": "route"}
            )
        for before in counts.models:
            if before.name in self.upstreams:
                self.upstreams[before.name].counts = msgspec.structs.replace(before, down=False)
        models = [upstream.counts for upstream in self.upstreams.values()]
        return msgspec.structs.replace(counts, models=models, trouble="")

    def _save_counts(self) -> None:
        """Write the counts for the next process; what cannot be written is written later."""
        content = msgspec.json.encode(self.counts)
        if content != self._saved:
            with suppress(OSError):
                replace_file(self.loop.folder / _COUNTS, [content], alone=self.loop.log.alone)
                self._saved = content

    async def _save_often(self) -> None:
        while True:
            await asyncio.sleep(_SAVE)
            await asyncio.to_thread(self._save_counts)

    # -- answering -------------------------------------------------------------------------------------

    async def _answer(self, request: Request, path: str) -> Reply:
        prompt = read_prompt(request.body, chat=path.startswith("/chat"))
        event_id = prompt.extras.event_id
        if self._saving is None:
            self._saving = asyncio.create_task(self._save_often())
        if event_id in self._answering:
            message = f"event {event_id[:200]!r} is being answered: each prompt needs its own id"
            raise RefusedError(message, status=409, retry_after=1.0)
        if event_id:
            self._answering.add(event_id)
        try:
            return await self._answer_prompt(prompt, path, request.headers.get("unit-id", ""))
        finally:
            self._answering.discard(event_id)

    async def _answer_prompt(self, prompt: Prompt, path: str, unit: str) -> Reply:
        route = self._route(prompt, path, unit)
        ask = self._ask_stream if prompt.streams else self._ask
        reply, errors = None, dict[str, UpstreamError]()
        for name in route.order:
            try:
                reply = await ask(route, self.upstreams[name])
                break
            except RejectedError as rejection:
                reply = Reply(rejection.status, rejection.body, (*JSON, *_headers_of(route, name)))
                break
            except UpstreamError as error:
                errors[name] = error
                self._warn(route, name, str(error))
        if route.recorded is not None:
            await route.recorded
        reasons = "; ".join(f"{name}: {reason}" for name, reason in errors.items())
        if (decision := route.decision) is not None:
            if reply is not None:  # if no model has answered, that is no reason to prefer another
                self._note_model(route, name, errors)
            # A client may repeat a prompt with its own id, whose answer then has a cost.
            is_over = reply.status != 200 if reply is not None else not prompt.extras.event_id
            if self._has_prices and is_over:
                self._submit(partial(self.front.cost, decision.event_id, 0.0))
            self.counts.trouble = f"no model has answered the latest prompt: {reasons}" * (reply is None)
        if reply is None:
            raise RefusedError(f"no model has answered: {reasons}", status=502)
        return reply

    def _note_model(self, route: _Route, name: str, errors: Mapping[str, UpstreamError]) -> None:
        """Learn that the chosen model has failed, or nothing, if another model has answered."""
        assert route.decision is not None
        chosen, event_id = route.decision.ids[0], route.decision.event_id
        failure = errors.get(chosen)
        if name == chosen:
            self._unlearnt.pop(event_id, None)
        elif failure is not None and failure.pause is None and self.content.failure_reward is not False:
            self._learn_failure(route)
        else:
            self._leave_unlearnt(event_id)

    def _route(self, prompt: Prompt, path: str, unit: str) -> _Route:
        """Decide which models are asked, in which order; the record of the decision is being written.

        A repeated prompt with the same id keeps its decision, and is asked again.
        """
        if prompt.model in self.upstreams:
            return _Route(prompt, path, [prompt.model], None, None)
        down = frozenset(name for name in self._ids if self.upstreams[name].is_down)
        event_id = prompt.extras.event_id or secrets.token_hex(16)
        before = self.front.excluded_from(event_id) if prompt.extras.event_id else None
        excluded = down if len(down) < len(self._ids) else frozenset()
        if before is not None:
            excluded = frozenset(self._ids[index] for index in before if index < len(self._ids))
        recorded, done = awaited_record()
        recorded.add_done_callback(lambda future: future.cancelled() or future.exception())
        decision = self.front.rank(
            RankRequest(
                event_id,
                [context_of_prompt(prompt, self.content)],
                self._ids,
                self._actions(prompt),
                excluded,
                deferred=True,
                unit=prompt.extras.unit or unit,
            ),
            done,
        )
        self.upstreams[decision.ids[0]].counts.chosen += before is None
        order = [name for name in decision.ids if name not in excluded]
        up = [name for name in order if name not in down]
        return _Route(prompt, path, up or order, decision, recorded)

    def _actions(self, prompt: Prompt) -> list[list[Features]]:
        """Return the features of the models, and what each will probably cost."""
        if not self._has_prices:
            return [[features] for features in self._features]
        costs = (self.upstreams[name].expected_cost(prompt.characters) for name in self._ids)
        return [
            [features | {"cost": msgspec.Raw(b"%g" % cost)}]
            for features, cost in zip(self._features, costs, strict=True)
        ]

    async def _ask(self, route: _Route, upstream: Upstream) -> Reply:
        """Return the answer of a model."""
        answer = await upstream.complete(route.path, route.prompt.body)
        self._note_answer(route, upstream, answer)
        fields = _named(route, upstream.counts.name, answer.content)
        return Reply(200, fields, (*JSON, *_headers_of(route, upstream.counts.name)))

    async def _ask_stream(self, route: _Route, upstream: Upstream) -> Reply:
        """Return the streamed answer of a model, once its first event has arrived."""
        events = upstream.stream(route.path, route.prompt.body)
        first = await anext(events)
        line = _named(route, upstream.counts.name, first.content).replace(b"\n", b" ")
        begin = b"data: " + line + b"\n\n"
        headers = (
            *content_type("text/event-stream; charset=utf-8"),
            *_headers_of(route, upstream.counts.name),
        )
        relayed = self._relay(route, upstream, events, first)
        await anext(relayed)  # a generator that has begun is closed even if the client has left
        return Reply(200, begin, headers, relayed, is_whole=True)

    async def _relay(
        self,
        route: _Route,
        upstream: Upstream,
        events: AsyncGenerator[Completion, None],
        first: Completion,
    ) -> AsyncGenerator[bytes, None]:
        """Yield nothing, then the events behind the first one."""
        texts, usage, left = [first.text], first.usage, _MOST_GRADED if self.content.judge else 0
        try:
            yield b""
            async for event in events:
                if left > 0:
                    texts.append(event.text)
                    left -= len(event.text)
                usage = event.usage or usage
                yield event.content
            self._note_answer(route, upstream, Completion(b"", "".join(texts), usage))
        except UpstreamError as error:
            self._warn(route, upstream.counts.name, str(error))
            self._learn_failure(route)
            problem = {"error": {"code": "BadGateway", "message": f"{upstream.counts.name}: {error}"}}
            yield b"data: %b\n\n" % msgspec.json.encode(problem)
        finally:
            await events.aclose()

    def _warn(self, route: _Route, name: str, reason: str) -> None:
        """Log that a model has failed."""
        decision = route.about(name)["event_id"]
        fields = {"event": "model_failed", "model": name, "reason": reason, "decision": decision}
        _LOG.warning("the model %s has failed: %s", name, reason, extra=fields)

    def _learn_failure(self, route: _Route) -> None:
        """Record the reward of a failure of the chosen model."""
        decision, reward = route.decision, self.content.failure_reward
        if decision is not None and reward is not False:
            self._submit(partial(self.record_reward, decision.event_id, reward, "failure"))

    def _leave_unlearnt(self, event_id: str) -> None:
        """Remember a decision of which nothing is learnt."""
        self._unlearnt[event_id] = None
        if len(self._unlearnt) > _MOST_UNLEARNT:
            del self._unlearnt[next(iter(self._unlearnt))]

    def _submit(self, record: Callable[[Done], None]) -> None:
        """Record something for which no client waits."""
        try:
            record(ignore_completion)
        except RefusedError as error:
            _LOG.warning("the router cannot record: %s", error, extra={"event": "not_recorded"})

    def _note_answer(self, route: _Route, upstream: Upstream, answer: Completion) -> None:
        """Record the cost of an answer, and have it judged if its decision belongs to the sample."""
        judge, decision = self.content.judge, route.decision
        if decision is None:
            return
        if self._has_prices and answer.usage is not None:
            self._submit(partial(self.front.cost, decision.event_id, upstream.cost_of(answer.usage)))
        if decision.ids[0] != upstream.counts.name:
            self.counts.fallbacks += 1
            return
        if judge is None or uniform_of(seed_of("judge", decision.event_id)) >= judge.rate:
            return
        if len(self._grading) >= _WAITING:
            self.counts.not_judged += 1
            return
        texts = route.prompt.text[:_MOST_GRADED], answer.text[:_MOST_GRADED]
        task = asyncio.create_task(self._judge(decision.event_id, *texts))
        self._grading.add(task)
        task.add_done_callback(self._grading.discard)

    async def _judge(self, event_id: str, prompt: str, answer: str) -> None:
        """Reward a decision with the grade that the judge gives to its answer."""
        judge = self.content.judge
        assert judge is not None
        texts = {"prompt": prompt, "answer": answer}
        question = _FIELD.sub(lambda match: texts[match[1]], judge.prompt)
        body = {name: msgspec.Raw(msgspec.json.encode(value)) for name, value in judge.parameters.items()}
        body["messages"] = msgspec.Raw(msgspec.json.encode([{"role": "user", "content": question}]))
        try:
            async with self._graders:
                grade = await self.upstreams[judge.model].complete("/chat/completions", body)
            found = _NUMBER.search(grade.text)
            value = None if found is None else float(found[0])
            if value is None or not judge.low <= value <= judge.high:
                reason = f"no number from {judge.low:g} to {judge.high:g} in {grade.text[:80]!r}"
                raise UpstreamError("nonsense", reason)
            reward = (value - judge.low) / (judge.high - judge.low)
            self.record_reward(event_id, reward, "judge", ignore_completion)
            self.counts.judged += 1
        except (UpstreamError, RejectedError, RefusedError) as error:
            self.counts.not_judged += 1
            fields = {"event": "not_judged", "model": judge.model, "decision": event_id}
            _LOG.warning("an answer is not judged: %s", error, extra=fields)


def _headers_of(route: _Route, model: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of an answer; names and ids are quoted like parts of a URL."""
    about = route.about(model)
    headers = [(b"onlineauto-model", quote(model).encode())]
    if route.decision is not None:
        headers.append((b"onlineauto-event-id", quote(route.decision.event_id).encode()))
    if about["fallback"]:
        headers.append((b"onlineauto-fallback", b"true"))
    return tuple(headers)


def _named(route: _Route, model: str, content: bytes) -> bytes:
    """Return an answer with the model that was picked, and the id of the decision."""
    fields: dict[str, Any] = _FIELDS.decode(content)
    return msgspec.json.encode(fields | {"model": model, "onlineauto": route.about(model)})
