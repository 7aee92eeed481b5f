"""``Handlers``: what each endpoint does with a request."""

from __future__ import annotations

import asyncio
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from starlette.responses import Response, StreamingResponse

from onlineauto.service.http.endpoint import json_answer
from onlineauto.service.http.openapi import openapi_document
from onlineauto.service.http.status import status_of
from onlineauto.service.http.waiting import Waiting
from onlineauto.service.http.wire import (
    Evaluate,
    PersonalizerRank,
    PersonalizerReward,
    Policy,
    Rank,
    Reward,
    Settings,
    answer_to,
    personalizer_answer,
)
from onlineauto.service.learning.evaluate import evaluated
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from onlineauto.service.http.endpoint import Asked
    from onlineauto.service.http.metrics import Metrics
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.ranking.answer import Ranked
    from onlineauto.service.ranking.question import Question

__all__ = ["Handlers"]

_RANK = msgspec.json.Decoder(Rank)
_PERSONALIZER_RANK = msgspec.json.Decoder(PersonalizerRank)
_REWARD = msgspec.json.Decoder(Reward)
_PERSONALIZER_REWARD = msgspec.json.Decoder(PersonalizerReward)
_PAGE: Final = Path(__file__).with_name("page.html")
_PAGE_HEADERS: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
}
_WATCHERS: Final = 32
_LAG: Final = 60.0


class Handlers:
    """Answers requests by a loop.

    Parameters
    ----------
    loop : Loop
        Decides and learns.
    metrics : Metrics
        What Prometheus reads.
    """

    def __init__(self, loop: Loop, metrics: Metrics) -> None:
        self.loop, self.metrics = loop, metrics
        self._watchers = 0
        self._evaluating = asyncio.Lock()
        self._model: tuple[str, bytes] = ("", b"")
        self.stopping = False

    async def personalizer_rank(self, asked: Asked) -> Response:
        """Rank as Personalizer does."""
        ranked = await self._rank(_PERSONALIZER_RANK.decode(asked.body).question(_new_id()))
        return json_answer(personalizer_answer(ranked), 201)

    async def personalizer_reward(self, asked: Asked) -> Response:
        """Take a reward as Personalizer does."""
        value = _PERSONALIZER_REWARD.decode(asked.body).value
        return await self._reward(asked.path["event_id"], value, asked.headers.get("idempotency-key", ""))

    async def activate(self, asked: Asked) -> Response:
        """Activate a decision."""
        future, done = Waiting.future()
        self.loop.activate(asked.path["event_id"], done)
        await future
        return Response(status_code=204)

    async def rank(self, asked: Asked) -> Response:
        """Rank."""
        return json_answer(answer_to(await self._rank(_RANK.decode(asked.body).question(_new_id()))))

    async def reward(self, asked: Asked) -> Response:
        """Take a reward."""
        found = _REWARD.decode(asked.body)
        key = found.key or asked.headers.get("idempotency-key", "")
        return await self._reward(found.event_id, found.reward, key)

    async def status(self, asked: Asked) -> Response:
        """Say how the service is."""
        del asked
        return json_answer(status_of(self.loop, points=True))

    async def settings(self, asked: Asked) -> Response:
        """Change how decisions are joined and who decides."""
        given = msgspec.to_builtins(msgspec.json.decode(asked.body, type=Settings))
        future, done = Waiting.future()
        changed = self.loop.change(given, done)
        await future
        return json_answer(changed)

    async def model(self, asked: Asked) -> Response:
        """Give the model that ranks, to whoever does not have it."""
        name = self.loop.published.name
        if asked.headers.get("if-none-match") == f'"{name}"':
            return Response(status_code=304, headers={"ETag": f'"{name}"'})
        if self._model[0] != self.loop.learner.name:
            self._model = await asyncio.to_thread(self.loop.model)
        name, content = self._model
        return Response(content, headers={"ETag": f'"{name}"'}, media_type="application/octet-stream")

    async def put_model(self, asked: Asked) -> Response:
        """Take a model, and let it learn and decide."""
        name = f"put-{secrets.token_hex(6)}"
        future, done = Waiting.future()
        await asyncio.to_thread(self.loop.put_model, name, asked.body, _from_thread(done))
        await future
        return json_answer(Policy(name), 201)

    async def models(self, asked: Asked) -> Response:
        """List the history."""
        del asked
        return json_answer(self.loop.learner.models.all())

    async def keep_model(self, asked: Asked) -> Response:
        """Write the model into the history."""
        del asked
        return json_answer(Policy(await asyncio.to_thread(self.loop.keep_model)), 201)

    async def use_model(self, asked: Asked) -> Response:
        """Let a model of the history learn and decide."""
        found = msgspec.json.decode(asked.body, type=Policy)
        future, done = Waiting.future()
        self.loop.use_model(found.name, done)
        await future
        return json_answer(found)

    async def evaluate(self, asked: Asked) -> Response:
        """Say what policies would have earned over the whole log."""
        policies = msgspec.json.decode(asked.body, type=Evaluate).policies
        if self._evaluating.locked():
            raise RefusedError("another evaluation runs", status=429, retry_after=10.0)
        async with self._evaluating:
            log, app = self.loop.log, self.loop.learner
            return json_answer(await asyncio.to_thread(evaluated, log, policies, app.workspace.configuration))

    async def alive(self, asked: Asked) -> Response:
        """Say that the process answers."""
        del asked
        return Response("ok\n", media_type="text/plain")

    async def ready(self, asked: Asked) -> Response:
        """Say whether ranks can be answered, and whether the model goes on learning."""
        del asked
        loop = self.loop
        if not loop.writable or self.stopping:
            return Response("no: the log cannot be written\n", 503, media_type="text/plain")
        stale = loop.failed is not None or loop.lag_seconds() > _LAG
        return Response(
            "stale: learning has stopped or lags\n" if stale else "ready\n", media_type="text/plain"
        )

    async def prometheus(self, asked: Asked) -> Response:
        """Give the metrics."""
        del asked
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, asked: Asked) -> Response:
        """Describe the endpoints."""
        del asked
        return json_answer(openapi_document(type(self)))

    async def page(self, asked: Asked) -> Response:
        """Give the page that shows all this."""
        del asked
        return Response(_PAGE.read_bytes(), headers=_PAGE_HEADERS, media_type="text/html")

    async def watch(self, asked: Asked) -> Response:
        """Send the status every second, as server-sent events."""
        del asked
        if self._watchers >= _WATCHERS:
            raise RefusedError(f"{_WATCHERS} pages watch already", status=429, retry_after=30.0)
        return StreamingResponse(
            self._statuses(), headers={"Cache-Control": "no-store"}, media_type="text/event-stream"
        )

    async def _statuses(self) -> AsyncIterator[bytes]:
        self._watchers += 1
        try:
            while not self.stopping:
                yield b"data: %b\n\n" % msgspec.json.encode(status_of(self.loop, points=True))
                await asyncio.sleep(1.0)
        finally:
            self._watchers -= 1

    async def _rank(self, question: Question) -> Ranked:
        future, done = Waiting.future()
        ranked = self.loop.rank(question, done)
        await future
        return ranked

    async def _reward(self, event_id: str, value: float, key: str) -> Response:
        future, done = Waiting.future()
        self.loop.reward(event_id, value, done, key=key)
        await future
        return Response(status_code=204)


def _new_id() -> str:
    return secrets.token_hex(16)


def _from_thread(done: Any) -> Any:
    """Return what calls `done` in the event loop that runs, from any thread."""
    loop = asyncio.get_running_loop()
    return lambda error: loop.call_soon_threadsafe(done, error)
