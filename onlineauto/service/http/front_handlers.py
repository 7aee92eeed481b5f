"""``FrontHandlers``: the endpoints of every server, both learners and rank servers."""

from __future__ import annotations

import secrets
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from onlineauto.service.client import RECORDED_BY
from onlineauto.service.http.reply import Reply, content_type, reply_to_error
from onlineauto.service.http.routes import openapi_document
from onlineauto.service.http.status import rank_server_status
from onlineauto.service.http.wire import (
    BatchAnswer,
    BatchDecision,
    MetricValue,
    PersonalizerRank,
    PersonalizerReward,
    PersonalizerSlotsRank,
    PersonalizerSlotsReward,
    Problem,
    Rank,
    RawBatch,
    Reward,
    SlotsRank,
    answer_to,
    personalizer_answer,
    personalizer_slots_answer,
    slots_answer,
)
from onlineauto.service.loop.slots import activate_slots, rank_slots, reward_slots, slot_id
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.service.http.endpoint import Request
    from onlineauto.service.http.metrics import ServiceMetrics
    from onlineauto.service.log.group_commit import Done
    from onlineauto.service.loop.front import Front
    from onlineauto.service.loop.rank_server import RankServer
    from onlineauto.service.loop.slots import SlotsRankRequest
    from onlineauto.service.ranking.answer import Ranked
    from onlineauto.service.ranking.rank_request import RankRequest

_RANK = msgspec.json.Decoder(Rank)
_PERSONALIZER_RANK = msgspec.json.Decoder(PersonalizerRank)
_BATCH = msgspec.json.Decoder(RawBatch)
_REWARD = msgspec.json.Decoder(Reward)
_PERSONALIZER_REWARD = msgspec.json.Decoder(PersonalizerReward)
_SLOTS = msgspec.json.Decoder(SlotsRank)
_PERSONALIZER_SLOTS = msgspec.json.Decoder(PersonalizerSlotsRank)
_PERSONALIZER_SLOTS_REWARD = msgspec.json.Decoder(PersonalizerSlotsReward)
_METRIC = msgspec.json.Decoder(MetricValue)
_NOTHING = Reply(204, headers=((RECORDED_BY[0].encode(), RECORDED_BY[1].encode()),))


class FrontHandlers:
    """Answers requests with a front."""

    def __init__(self, front: Front, metrics: ServiceMetrics) -> None:
        self.front, self.metrics = front, metrics
        self.stopping = self.abandoned = False

    def personalizer_slots(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank slots, in Personalizer's format."""
        return _each(partial(self._slots, _PERSONALIZER_SLOTS, personalizer_slots_answer, 201), requests)

    def slots(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank slots."""
        return _each(partial(self._slots, _SLOTS, slots_answer, 200), requests)

    def personalizer_slots_reward(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Record rewards of slots, in Personalizer's format."""
        return _each(self._personalizer_slots_reward, requests)

    def personalizer_rank(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank, in Personalizer's format."""
        return self._ranks(_PERSONALIZER_RANK, requests, _personalizer_reply)

    def rank(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank."""
        return self._ranks(_RANK, requests, _reply)

    def rank_batch(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Rank many times at once; each decision fails alone."""
        return _each(self._rank_batch, requests)

    def personalizer_reward(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Record rewards, in Personalizer's format."""
        return _each(self._personalizer_reward, requests)

    def metric(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Record values of metrics."""
        return _each(self._metric, requests)

    def activate(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Activate decisions."""
        return _each(self._activate, requests)

    def slots_activate(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Activate the deferred slots of events."""
        return _each(partial(self._activate, single=False), requests)

    def reward(self, requests: Sequence[Request]) -> list[Reply | Exception]:
        """Record rewards."""
        return _each(self._reward, requests)

    async def alive(self, request: Request) -> Reply:
        """Report whether the process answers, writes its log and learns."""
        del request
        trouble = self.front.trouble
        if trouble:
            return Reply.text(f"no: {trouble}\n", 503)
        return Reply.text("ok\n")

    async def prometheus(self, request: Request) -> Reply:
        """Return the metrics."""
        del request
        return Reply(200, self.metrics.text(), content_type("text/plain; version=0.0.4; charset=utf-8"))

    async def openapi(self, request: Request) -> Reply:
        """Describe the endpoints."""
        del request
        return Reply.json(openapi_document(type(self)))

    def _ranks(
        self,
        decoder: msgspec.json.Decoder[Rank] | msgspec.json.Decoder[PersonalizerRank],
        requests: Sequence[Request],
        reply: Callable[[Ranked], Reply],
    ) -> list[Reply | Exception]:
        """Rank all readable requests at once; return a reply or an error for each."""
        asked = [(each.body, each.headers.get("unit-id"), each.done) for each in requests]
        answers = self._decide(decoder, asked)
        return [each if isinstance(each, Exception) else reply(each) for each in answers]

    def _decide(
        self,
        decoder: msgspec.json.Decoder[Rank] | msgspec.json.Decoder[PersonalizerRank],
        asked: Sequence[tuple[bytes | msgspec.Raw, str | None, Done]],
        ids: set[str] | None = None,
    ) -> list[Ranked | Exception]:
        """Decide all readable bodies at once, each with the unit that its header names.

        `ids` collects the ids of the decisions of a batch, of which none may have the id of an earlier one.
        """
        found: list[tuple[RankRequest, Done] | Exception] = []
        for body, unit, done in asked:
            try:
                rank_request = decoder.decode(body).rank_request(_new_id)
                if ids is not None:
                    _add_once(rank_request.event_id, ids)
                found.append((rank_request._replace(unit=unit) if unit else rank_request, done))
            except Exception as error:
                found.append(error)
        answers = iter(self.front.rank_all([each for each in found if not isinstance(each, Exception)]))
        return [each if isinstance(each, Exception) else next(answers) for each in found]

    def _rank_batch(self, request: Request) -> Reply:
        decisions, most = _BATCH.decode(request.body).decisions, self.front.limits.decisions
        if not 1 <= len(decisions) <= most:
            message = f"a batch has 1 to {most} decisions, not {len(decisions)}"
            raise RefusedError(message, status=413 if decisions else 400)
        all_done = _AllDone(request.done, len(decisions) + 1)
        unit = request.headers.get("unit-id")
        rows = []
        for each in self._decide(_RANK, [(raw, unit, all_done) for raw in decisions], set()):
            if isinstance(each, Exception):
                refused = reply_to_error(each, "rank_batch")
                error = msgspec.json.decode(refused.body, type=Problem).error
                rows.append(BatchDecision(refused.status, error=error))
                all_done(None)  # this decision has no record in the log
            else:
                rows.append(BatchDecision(200, answer_to(each)))
        all_done(None)
        return Reply.json(BatchAnswer(rows))

    def _slots(
        self,
        decoder: msgspec.json.Decoder[SlotsRank] | msgspec.json.Decoder[PersonalizerSlotsRank],
        answer: Callable[[SlotsRankRequest, Sequence[Ranked]], object],
        status: int,
        request: Request,
    ) -> Reply:
        asked = decoder.decode(request.body).rank_request(_new_id)
        asked = asked._replace(unit=request.headers.get("unit-id") or asked.unit)
        return Reply.json(answer(asked, rank_slots(self.front, asked, request.done)), status)

    def _personalizer_slots_reward(self, request: Request) -> None:
        rewards = [
            (each.slot_id, each.value) for each in _PERSONALIZER_SLOTS_REWARD.decode(request.body).reward
        ]
        key = request.headers.get("idempotency-key", "")
        reward_slots(self.front, request.path["event_id"], rewards, request.done, key=key)

    def _personalizer_reward(self, request: Request) -> None:
        value, key = (
            _PERSONALIZER_REWARD.decode(request.body).value,
            request.headers.get("idempotency-key", ""),
        )
        self.front.reward(request.path["event_id"], value, request.done, key=key)

    def _activate(self, request: Request, *, single: bool = True) -> None:
        activate_slots(self.front, request.path["event_id"], request.done, single=single)

    def _metric(self, request: Request) -> None:
        body = _METRIC.decode(request.body)
        key = body.key or request.headers.get("idempotency-key", "")
        event_id = slot_id(body.event_id, body.slot) if body.slot else body.event_id
        self.front.metric(event_id, body.metric, body.value, request.done, key=key)

    def _reward(self, request: Request) -> None:
        body = _REWARD.decode(request.body)
        key = body.key or request.headers.get("idempotency-key", "")
        event_id = slot_id(body.event_id, body.slot) if body.slot else body.event_id
        self.front.reward(event_id, body.reward, request.done, key=key)

    def _readiness(self, stale: str) -> Reply:
        """Return whether ranks can be answered, and why the model is stale, if it is."""
        if self.stopping or not self.front.writable:
            why = "the service stops" if self.stopping else self.front.trouble
            return Reply.text(f"no: {why}\n", 503)
        return Reply.text(f"stale: {stale}\n" if stale else "ready\n")


class _AllDone:
    """Calls `done` once it was called `count` times itself, or with the first error."""

    def __init__(self, done: Done, count: int) -> None:
        self._done, self._left = done, count

    def __call__(self, error: Exception | None) -> None:
        self._left -= 1
        if error is not None or not self._left:
            self._done(error)


class RankServerHandlers(FrontHandlers):
    """Answers the requests that a rank server receives."""

    front: RankServer

    async def status(self, request: Request) -> Reply:
        """Return the state of the rank server."""
        del request
        return Reply.json(rank_server_status(self.front))

    async def ready(self, request: Request) -> Reply:
        """Report whether ranks can be answered, and whether the learner is available."""
        del request
        stale = "" if self.front.failed is None else "the learner is away"
        return self._readiness(stale)


def _reply(ranked: Ranked) -> Reply:
    return Reply.json(answer_to(ranked))


def _personalizer_reply(ranked: Ranked) -> Reply:
    return Reply.json(personalizer_answer(ranked), 201)


def _each(take: Callable[[Request], Reply | None], requests: Sequence[Request]) -> list[Reply | Exception]:
    """Process requests one after the other; an error affects its own request only."""
    replies: list[Reply | Exception] = []
    for each in requests:
        try:
            replies.append(take(each) or _NOTHING)
        except Exception as error:
            replies.append(error)
    return replies


def _add_once(event_id: str, ids: set[str]) -> None:
    """Add the id of a decision to those before it in its batch."""
    if event_id in ids:
        message = f"event {event_id[:200]!r} is twice in this batch: each decision needs its own id"
        raise RefusedError(message, status=409)
    ids.add(event_id)


def _new_id() -> str:
    return secrets.token_hex(16)
