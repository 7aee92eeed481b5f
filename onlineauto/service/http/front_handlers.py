"""``FrontHandlers``: the endpoints of every server, both learners and rank servers."""

from __future__ import annotations

import secrets
from functools import wraps
from typing import TYPE_CHECKING, TypeVar

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
from onlineauto.service.loop.slots import activate_slots, after_all, rank_slots, reward_slots, slot_id
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
Handlers = TypeVar("Handlers", bound="FrontHandlers")
_NOTHING = Reply(204, headers=((RECORDED_BY[0].encode(), RECORDED_BY[1].encode()),))


def _one_by_one(
    answer: Callable[[Handlers, Request], Reply | None],
) -> Callable[[Handlers, Sequence[Request]], list[Reply | Exception]]:
    """Return a handler of many requests that answers each by `answer`; an error affects its request only."""

    @wraps(answer)
    def answer_all(self: Handlers, requests: Sequence[Request]) -> list[Reply | Exception]:
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

    def __init__(self, front: Front, metrics: ServiceMetrics) -> None:
        self.front, self.metrics = front, metrics
        self.stopping = self.abandoned = False

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
        event_id, key = _named_by(body), body.key or _key_of(request)
        self.front.metric(event_id, body.metric, body.value, request.done, key=key)

    @_one_by_one
    def activate(self, request: Request) -> None:
        """Activate decisions."""
        activate_slots(self.front, request.path["event_id"], request.done, single=True)

    @_one_by_one
    def slots_activate(self, request: Request) -> None:
        """Activate the deferred slots of events."""
        activate_slots(self.front, request.path["event_id"], request.done, single=False)

    @_one_by_one
    def reward(self, request: Request) -> None:
        """Record rewards."""
        body = _REWARD.decode(request.body)
        self.front.reward(_named_by(body), body.reward, request.done, key=body.key or _key_of(request))

    async def alive(self, _request: Request) -> Reply:
        """Report whether the process answers, writes its log and learns."""
        trouble = self.front.trouble
        if trouble:
            return Reply.text(f"no: {trouble}\n", 503)
        return Reply.text("ok\n")

    async def prometheus(self, _request: Request) -> Reply:
        """Return the metrics."""
        return Reply(200, self.metrics.text(), content_type("text/plain; version=0.0.4; charset=utf-8"))

    async def openapi(self, _request: Request) -> Reply:
        """Describe the endpoints."""
        return Reply.json(openapi_document(type(self)))

    def _ranks(
        self,
        decoder: msgspec.json.Decoder[Rank] | msgspec.json.Decoder[PersonalizerRank],
        requests: Sequence[Request],
        reply: Callable[[Ranked], Reply],
    ) -> list[Reply | Exception]:
        """Rank all readable requests at once; return a reply or an error for each."""
        asked = [(request.body, request.headers.get("unit-id"), request.done) for request in requests]
        answers = self._decide(decoder, asked)
        return [answer if isinstance(answer, Exception) else reply(answer) for answer in answers]

    def _decide(
        self,
        decoder: msgspec.json.Decoder[Rank] | msgspec.json.Decoder[PersonalizerRank],
        asked: Sequence[tuple[bytes | msgspec.Raw, str | None, Done]],
        ids: set[str] | None = None,
    ) -> list[Ranked | Exception]:
        """Decide all readable bodies at once, each with the unit that its header names.

        `ids` collects the ids of the decisions of a batch, of which none may have the id of an earlier one.
        """
        items: list[tuple[RankRequest, Done] | Exception] = []
        for body, unit, done in asked:
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
        decoder: msgspec.json.Decoder[SlotsRank] | msgspec.json.Decoder[PersonalizerSlotsRank],
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


def _named_by(body: Reward | MetricValue) -> str:
    """Return the id of the decision, or of the decision of a slot, that a body names."""
    return slot_id(body.event_id, body.slot) if body.slot else body.event_id


def _new_id() -> str:
    return secrets.token_hex(16)
