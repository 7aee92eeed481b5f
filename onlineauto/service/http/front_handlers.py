"""``FrontHandlers``: the endpoints that every server has, whether it learns or follows a learner."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from onlineauto.service.http.endpoint import Reply, json_answer
from onlineauto.service.http.openapi import openapi_document
from onlineauto.service.http.status import follower_status
from onlineauto.service.http.waiting import Waiting
from onlineauto.service.http.wire import (
    PersonalizerRank,
    PersonalizerReward,
    Rank,
    Reward,
    answer_to,
    personalizer_answer,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.service.http.endpoint import Asked
    from onlineauto.service.http.metrics import Metrics
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.follower import Follower
    from onlineauto.service.loop.front import Front

__all__ = ["FollowerHandlers", "FrontHandlers"]

_RANK = msgspec.json.Decoder(Rank)
_PERSONALIZER_RANK = msgspec.json.Decoder(PersonalizerRank)
_REWARD = msgspec.json.Decoder(Reward)
_PERSONALIZER_REWARD = msgspec.json.Decoder(PersonalizerReward)
_NOTHING = Reply(204)


class FrontHandlers:
    """Answers requests by a front.

    Parameters
    ----------
    front : Front
        Decides.
    metrics : Metrics
        What Prometheus reads.
    """

    def __init__(self, front: Front, metrics: Metrics) -> None:
        self.front, self.metrics = front, metrics
        self.stopping = False

    async def personalizer_rank(self, asked: Asked) -> Response:
        """Rank as Personalizer does."""
        return await _logged(self.begin_personalizer_rank, asked)

    async def personalizer_reward(self, asked: Asked) -> Response:
        """Take a reward as Personalizer does."""
        return await _logged(self.begin_personalizer_reward, asked)

    async def activate(self, asked: Asked) -> Response:
        """Activate a decision."""
        return await _logged(self.begin_activate, asked)

    async def rank(self, asked: Asked) -> Response:
        """Rank."""
        return await _logged(self.begin_rank, asked)

    async def reward(self, asked: Asked) -> Response:
        """Take a reward."""
        return await _logged(self.begin_reward, asked)

    def begin_personalizer_rank(self, asked: Asked, done: Done) -> Reply:
        """Begin to rank as Personalizer does; this and the following are also called without a task."""
        question = _PERSONALIZER_RANK.decode(asked.body).question(_new_id)
        return Reply.json(personalizer_answer(self.front.rank(question, done)), 201)

    def begin_personalizer_reward(self, asked: Asked, done: Done) -> Reply:
        """Begin to take a reward as Personalizer does."""
        value, key = _PERSONALIZER_REWARD.decode(asked.body).value, asked.headers.get("idempotency-key", "")
        self.front.reward(asked.path["event_id"], value, done, key=key)
        return _NOTHING

    def begin_activate(self, asked: Asked, done: Done) -> Reply:
        """Begin to activate a decision."""
        self.front.activate(asked.path["event_id"], done)
        return _NOTHING

    def begin_rank(self, asked: Asked, done: Done) -> Reply:
        """Begin to rank."""
        return Reply.json(answer_to(self.front.rank(_RANK.decode(asked.body).question(_new_id), done)))

    def begin_reward(self, asked: Asked, done: Done) -> Reply:
        """Begin to take a reward."""
        found = _REWARD.decode(asked.body)
        key = found.key or asked.headers.get("idempotency-key", "")
        self.front.reward(found.event_id, found.reward, done, key=key)
        return _NOTHING

    async def alive(self, asked: Asked) -> Response:
        """Say that the process answers."""
        del asked
        return Response("ok\n", media_type="text/plain")

    async def prometheus(self, asked: Asked) -> Response:
        """Give the metrics."""
        del asked
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, asked: Asked) -> Response:
        """Describe the endpoints."""
        del asked
        return json_answer(openapi_document(type(self)))

    def _readiness(self, stale: str) -> Response:
        """Return whether ranks can be answered, and why the model is stale, if it is."""
        if self.stopping or not self.front.writable:
            why = "the service stops" if self.stopping else "the log cannot be written"
            return Response(f"no: {why}\n", 503, media_type="text/plain")
        return Response(f"stale: {stale}\n" if stale else "ready\n", media_type="text/plain")


class FollowerHandlers(FrontHandlers):
    """Answers requests of a rank server."""

    front: Follower

    async def status(self, asked: Asked) -> Response:
        """Say how the rank server is."""
        del asked
        return json_answer(follower_status(self.front))

    async def ready(self, asked: Asked) -> Response:
        """Say whether ranks can be answered, and whether the learner is there."""
        del asked
        stale = "" if self.front.failed is None else "the learner is away"
        return self._readiness(stale)


async def _logged(begin: Callable[[Asked, Done], Reply], asked: Asked) -> Response:
    """Begin an answer, and give it once the log has the record."""
    future, done = Waiting.future()
    reply = begin(asked, done)
    await future
    return reply.response()


def _new_id() -> str:
    return secrets.token_hex(16)
