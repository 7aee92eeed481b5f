"""``FrontHandlers``: the endpoints of every server, both learners and rank servers."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response

from onlineauto.service.http.endpoint import Reply, json_answer
from onlineauto.service.http.openapi import openapi_document
from onlineauto.service.http.status import follower_status
from onlineauto.service.http.waiting import Waiting
from onlineauto.service.http.wire import (
    MetricValue,
    PersonalizerRank,
    PersonalizerReward,
    PersonalizerSlotsRank,
    PersonalizerSlotsReward,
    Rank,
    Reward,
    SlotsRank,
    answer_to,
    personalizer_answer,
    personalizer_slots_answer,
    slots_answer,
)
from onlineauto.service.loop.slots import activate_slots, rank_slots, reward_slots
from onlineauto.service.ranking.slots import slot_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.service.http.direct.direct_endpoint import Begin
    from onlineauto.service.http.endpoint import AdmittedRequest
    from onlineauto.service.http.metrics import ServiceMetrics
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.follower import Follower
    from onlineauto.service.loop.front import Front
    from onlineauto.service.ranking.answer import Ranked
    from onlineauto.service.ranking.question import Question
    from onlineauto.service.ranking.slots import SlotsQuestion

_RANK = msgspec.json.Decoder(Rank)
_PERSONALIZER_RANK = msgspec.json.Decoder(PersonalizerRank)
_REWARD = msgspec.json.Decoder(Reward)
_PERSONALIZER_REWARD = msgspec.json.Decoder(PersonalizerReward)
_SLOTS = msgspec.json.Decoder(SlotsRank)
_PERSONALIZER_SLOTS = msgspec.json.Decoder(PersonalizerSlotsRank)
_PERSONALIZER_SLOTS_REWARD = msgspec.json.Decoder(PersonalizerSlotsReward)
_METRIC = msgspec.json.Decoder(MetricValue)
_NOTHING = Reply(204)


class FrontHandlers:
    """Answers requests with a front.

    Parameters
    ----------
    front : Front
        Decides, and records rewards.
    metrics : Metrics
        The metrics for Prometheus.
    """

    def __init__(self, front: Front, metrics: ServiceMetrics) -> None:
        self.front, self.metrics = front, metrics
        self.stopping = self.abandoned = False

    async def personalizer_rank(self, request: AdmittedRequest) -> Response:
        """Rank, in Personalizer's format."""
        return await _answer_once_logged(self.begin_personalizer_rank, request)

    async def personalizer_reward(self, request: AdmittedRequest) -> Response:
        """Record a reward, in Personalizer's format."""
        return await _answer_once_logged(self.begin_personalizer_reward, request)

    async def activate(self, request: AdmittedRequest) -> Response:
        """Activate a decision."""
        return await _answer_once_logged(self.begin_activate, request)

    async def rank(self, request: AdmittedRequest) -> Response:
        """Rank."""
        return await _answer_once_logged(self.begin_rank, request)

    async def reward(self, request: AdmittedRequest) -> Response:
        """Record a reward."""
        return await _answer_once_logged(self.begin_reward, request)

    async def personalizer_slots(self, request: AdmittedRequest) -> Response:
        """Rank slots, in Personalizer's format."""
        return await _answer_once_logged(self.begin_personalizer_slots, request)

    async def personalizer_slots_reward(self, request: AdmittedRequest) -> Response:
        """Record rewards of slots, in Personalizer's format."""
        return await _answer_once_logged(self.begin_personalizer_slots_reward, request)

    async def slots_activate(self, request: AdmittedRequest) -> Response:
        """Activate the deferred slots of an event."""
        return await _answer_once_logged(self.begin_slots_activate, request)

    async def slots(self, request: AdmittedRequest) -> Response:
        """Rank slots."""
        return await _answer_once_logged(self.begin_slots, request)

    def begin_personalizer_slots(
        self, requests: Sequence[tuple[AdmittedRequest, Done]]
    ) -> list[Reply | Exception]:
        """Begin to rank slots, in Personalizer's format."""
        return _each(partial(self._slots, _PERSONALIZER_SLOTS, personalizer_slots_answer, 201), requests)

    def begin_slots(self, requests: Sequence[tuple[AdmittedRequest, Done]]) -> list[Reply | Exception]:
        """Begin to rank slots."""
        return _each(partial(self._slots, _SLOTS, slots_answer, 200), requests)

    def begin_personalizer_slots_reward(
        self, requests: Sequence[tuple[AdmittedRequest, Done]]
    ) -> list[Reply | Exception]:
        """Begin to record rewards of slots, in Personalizer's format."""
        return _each(self._personalizer_slots_reward, requests)

    def begin_personalizer_rank(
        self, requests: Sequence[tuple[AdmittedRequest, Done]]
    ) -> list[Reply | Exception]:
        """Begin to rank, in Personalizer's format; the `begin_…` methods are also called without a task."""
        return self._ranks(_PERSONALIZER_RANK, requests, _personalizer_reply)

    def begin_rank(self, requests: Sequence[tuple[AdmittedRequest, Done]]) -> list[Reply | Exception]:
        """Begin to rank."""
        return self._ranks(_RANK, requests, _reply)

    def begin_personalizer_reward(
        self, requests: Sequence[tuple[AdmittedRequest, Done]]
    ) -> list[Reply | Exception]:
        """Begin to record rewards, in Personalizer's format."""
        return _each(self._personalizer_reward, requests)

    async def metric(self, request: AdmittedRequest) -> Response:
        """Record a value of a metric of the guardrails."""
        return await _answer_once_logged(self.begin_metric, request)

    def begin_metric(self, requests: Sequence[tuple[AdmittedRequest, Done]]) -> list[Reply | Exception]:
        """Begin to record values of metrics."""
        return _each(self._metric, requests)

    def begin_activate(self, requests: Sequence[tuple[AdmittedRequest, Done]]) -> list[Reply | Exception]:
        """Begin to activate decisions."""
        return _each(self._activate, requests)

    def begin_slots_activate(
        self, requests: Sequence[tuple[AdmittedRequest, Done]]
    ) -> list[Reply | Exception]:
        """Begin to activate the deferred slots of events."""
        return _each(partial(self._activate, single=False), requests)

    def begin_reward(self, requests: Sequence[tuple[AdmittedRequest, Done]]) -> list[Reply | Exception]:
        """Begin to record rewards."""
        return _each(self._reward, requests)

    async def alive(self, request: AdmittedRequest) -> Response:
        """Report whether the process answers, writes its log and learns."""
        del request
        trouble = self.front.trouble
        if trouble:
            return Response(f"no: {trouble}\n", 503, media_type="text/plain")
        return Response("ok\n", media_type="text/plain")

    async def prometheus(self, request: AdmittedRequest) -> Response:
        """Return the metrics."""
        del request
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(self, request: AdmittedRequest) -> Response:
        """Describe the endpoints."""
        del request
        return json_answer(openapi_document(type(self)))

    def _ranks(
        self,
        decoder: msgspec.json.Decoder[Rank] | msgspec.json.Decoder[PersonalizerRank],
        requests: Sequence[tuple[AdmittedRequest, Done]],
        reply: Callable[[Ranked], Reply],
    ) -> list[Reply | Exception]:
        """Rank all readable requests at once; return a reply or an error for each."""
        found: list[Question | Exception] = []
        for each, _ in requests:
            try:
                asked = decoder.decode(each.body).question(_new_id)
                unit = each.headers.get("unit-id")
                found.append(asked._replace(unit=unit) if unit else asked)
            except Exception as error:
                found.append(error)
        both = zip(found, requests, strict=True)
        questions = [(each, done) for each, (_, done) in both if not isinstance(each, Exception)]
        answers = iter(self.front.rank_all(questions))
        results = (each if isinstance(each, Exception) else next(answers) for each in found)
        return [each if isinstance(each, Exception) else reply(each) for each in results]

    def _slots(
        self,
        decoder: msgspec.json.Decoder[SlotsRank] | msgspec.json.Decoder[PersonalizerSlotsRank],
        answer: Callable[[SlotsQuestion, Sequence[Ranked]], object],
        status: int,
        request: AdmittedRequest,
        done: Done,
    ) -> Reply:
        asked = decoder.decode(request.body).question(_new_id)
        asked = asked._replace(unit=request.headers.get("unit-id") or asked.unit)
        return Reply.json(answer(asked, rank_slots(self.front, asked, done)), status)

    def _personalizer_slots_reward(self, request: AdmittedRequest, done: Done) -> None:
        rewards = [
            (each.slot_id, each.value) for each in _PERSONALIZER_SLOTS_REWARD.decode(request.body).reward
        ]
        key = request.headers.get("idempotency-key", "")
        reward_slots(self.front, request.path["event_id"], rewards, done, key=key)

    def _personalizer_reward(self, request: AdmittedRequest, done: Done) -> None:
        value, key = (
            _PERSONALIZER_REWARD.decode(request.body).value,
            request.headers.get("idempotency-key", ""),
        )
        self.front.reward(request.path["event_id"], value, done, key=key)

    def _activate(self, request: AdmittedRequest, done: Done, *, single: bool = True) -> None:
        activate_slots(self.front, request.path["event_id"], done, single=single)

    def _metric(self, request: AdmittedRequest, done: Done) -> None:
        body = _METRIC.decode(request.body)
        event_id = slot_id(body.event_id, body.slot) if body.slot else body.event_id
        self.front.metric(event_id, body.metric, body.value, done)

    def _reward(self, request: AdmittedRequest, done: Done) -> None:
        body = _REWARD.decode(request.body)
        key = body.key or request.headers.get("idempotency-key", "")
        event_id = slot_id(body.event_id, body.slot) if body.slot else body.event_id
        self.front.reward(event_id, body.reward, done, key=key)

    def _readiness(self, stale: str) -> Response:
        """Return whether ranks can be answered, and why the model is stale, if it is."""
        if self.stopping or not self.front.writable:
            why = "the service stops" if self.stopping else self.front.trouble
            return Response(f"no: {why}\n", 503, media_type="text/plain")
        return Response(f"stale: {stale}\n" if stale else "ready\n", media_type="text/plain")


class FollowerHandlers(FrontHandlers):
    """Answers requests of a rank server."""

    front: Follower

    async def status(self, request: AdmittedRequest) -> Response:
        """Return the state of the rank server."""
        del request
        return json_answer(follower_status(self.front))

    async def ready(self, request: AdmittedRequest) -> Response:
        """Report whether ranks can be answered, and whether the learner is available."""
        del request
        stale = "" if self.front.failed is None else "the learner is away"
        return self._readiness(stale)


def _reply(ranked: Ranked) -> Reply:
    return Reply.json(answer_to(ranked))


def _personalizer_reply(ranked: Ranked) -> Reply:
    return Reply.json(personalizer_answer(ranked), 201)


def _each(
    take: Callable[[AdmittedRequest, Done], Reply | None], requests: Sequence[tuple[AdmittedRequest, Done]]
) -> list[Reply | Exception]:
    """Process requests one after the other; an error affects its own request only."""
    replies: list[Reply | Exception] = []
    for each, done in requests:
        try:
            replies.append(take(each, done) or _NOTHING)
        except Exception as error:
            replies.append(error)
    return replies


async def _answer_once_logged(begin: Begin, request: AdmittedRequest) -> Response:
    """Begin an answer, and return it once the log has the record."""
    future, done = Waiting.future()
    reply = begin([(request, done)])[0]
    if isinstance(reply, Exception):
        raise reply
    await future
    return reply.response()


def _new_id() -> str:
    return secrets.token_hex(16)
