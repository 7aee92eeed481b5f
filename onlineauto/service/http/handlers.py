"""``Handlers``: the answer of each endpoint to a request."""

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from onlineauto.service.http.front_handlers import FrontHandlers
from onlineauto.service.http.page import page_reply
from onlineauto.service.http.personalizer import (
    DateRange,
    LogProperties,
    ModelProperties,
    PolicyContract,
    ServiceConfiguration,
    changes_in,
    check_policy,
    configuration_of,
    date_of,
)
from onlineauto.service.http.reply import Reply, content_type
from onlineauto.service.http.status import status_of
from onlineauto.service.http.wire import Canary, Evaluate, ModelChoice, Settings
from onlineauto.service.learning.evaluate import evaluate_policies
from onlineauto.service.log.record import RecordsAnswer
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from onlineauto.service.http.endpoint import Request
    from onlineauto.service.http.metrics import ServiceMetrics
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.loop import Loop

_BYTES: Final = content_type("application/octet-stream")
_POSITION_DIGITS: Final = 19
_WATCHERS: Final = 32
_LAG: Final = 60.0
Result = TypeVar("Result")


class Handlers(FrontHandlers):
    """Answers requests with a loop."""

    def __init__(self, loop: Loop, metrics: ServiceMetrics) -> None:
        super().__init__(loop, metrics)
        self.loop = loop
        self._watchers = 0
        self._evaluating = asyncio.Lock()
        self._model: tuple[str, bytes] = ("", b"")

    async def status(self, _request: Request) -> Reply:
        """Return the state of the service."""
        return Reply.json(status_of(self.loop, points=True))

    async def experiment(self, _request: Request) -> Reply:
        """Return the state of the experiment: the lift over the control arm, the guardrails, the alarms."""
        return Reply.json(self.loop.experiment)

    async def settings(self, request: Request) -> Reply:
        """Change the mode, and the settings of the join."""
        changes = msgspec.to_builtins(msgspec.json.decode(request.body, type=Settings))
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
        changes = changes_in(msgspec.json.decode(request.body, type=ServiceConfiguration), self.loop)
        await _recorded(partial(self.loop.change, changes))
        return Reply.json(configuration_of(self.loop))

    async def policy(self, _request: Request) -> Reply:
        """Return the options of the model, in Personalizer's format."""
        return Reply.json(PolicyContract(self.loop.app, self.loop.join.settings.options))

    async def set_policy(self, request: Request) -> Reply:
        """Check that a policy of Personalizer has the options of the model."""
        check_policy(msgspec.json.decode(request.body, type=PolicyContract), self.loop.join.settings)
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
        body = msgspec.json.decode(request.body, type=ModelChoice)
        await _recorded(partial(self.loop.use_model, body.name))
        return Reply.json(body)

    async def start_canary(self, request: Request) -> Reply:
        """Let a model of the history decide for a share of the units; a share of 0 ends the canary."""
        body = msgspec.json.decode(request.body, type=Canary)
        await _recorded(partial(self.loop.start_canary, body.name, body.share), in_thread=True)
        return Reply.json(body)

    async def evaluate(self, request: Request) -> Reply:
        """Estimate the values of policies over the whole log."""
        policies = msgspec.json.decode(request.body, type=Evaluate).policies
        if self._evaluating.locked():
            raise RefusedError("another evaluation runs", status=429, retry_after=10.0)
        async with self._evaluating:
            log, app = self.loop.log, self.loop.learner
            return Reply.json(
                await asyncio.to_thread(evaluate_policies, log, policies, app.workspace.configuration)
            )

    async def explanation(self, _request: Request) -> Reply:
        """Explain the scores of the latest decision; see `onlineauto.interop.explanation`."""
        return Reply.json(await asyncio.to_thread(self.loop.explain))

    async def ready(self, _request: Request) -> Reply:
        """Report whether ranks can be answered, and whether learning continues."""
        loop = self.loop
        if not loop.caught_up:
            return Reply.text("no: the log is being learnt\n", 503)
        lag = loop.lag_seconds()
        lags = f"the learner is {lag:.0f} seconds behind the log" if lag > _LAG else ""
        return self._readiness(loop.trouble or lags)

    async def page(self, _request: Request) -> Reply:
        """Return the live page."""
        return page_reply()

    async def watch(self, _request: Request) -> Reply:
        """Send the status every second, as server-sent events."""
        if self._watchers >= _WATCHERS:
            raise RefusedError(f"{_WATCHERS} pages watch already", status=429, retry_after=30.0)
        headers = (*content_type("text/event-stream; charset=utf-8"), (b"cache-control", b"no-store"))
        return Reply(200, headers=headers, stream=self._statuses())

    async def _statuses(self) -> AsyncGenerator[bytes, None]:
        self._watchers += 1
        try:
            while not self.stopping:
                yield b"data: %b\n\n" % msgspec.json.encode(status_of(self.loop, points=True))
                await asyncio.sleep(1.0)
        finally:
            self._watchers -= 1


def _tag_of(name: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"etag", f'"{name}"'.encode()),)


async def _recorded(submit: Callable[[Done], Result], *, in_thread: bool = False) -> Result:
    """Return the result of `submit`, which is called with a callback, once the log has its record."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def done(error: Exception | None) -> None:
        if error is not None and not future.done():
            future.set_exception(RefusedError(f"the log cannot be written: {error}", status=503))
        elif not future.done():
            future.set_result(None)

    if in_thread:
        result = await asyncio.to_thread(submit, lambda error: loop.call_soon_threadsafe(done, error))
    else:
        result = submit(done)
    await future
    return result
