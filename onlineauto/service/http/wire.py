"""Bodies of requests and answers, those of Azure Personalizer and our own; ``Reply``, also to an error."""

from __future__ import annotations

import errno
import logging
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.service.loop.loops import State
from onlineauto.service.loop.slots import SlotRequest, SlotsRankRequest
from onlineauto.service.ranking import (
    Features,
    Ranked,
    RankRequest,
)
from onlineauto.service.refused import RefusedError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

Objects = list[Features] | Features | None


class RankableAction(msgspec.Struct, rename="camel"):
    """An action of Personalizer: its id, and objects of features."""

    id: str
    features: Objects = None


class PersonalizerRank(msgspec.Struct, rename="camel"):
    """The body of ``POST /personalizer/v1.0/rank``."""

    actions: list[RankableAction]
    context_features: Objects = None
    excluded_actions: list[str] | None = None
    event_id: str | None = None
    defer_activation: bool | None = None

    def rank_request(self, new_id: Callable[[], str]) -> RankRequest:
        """Return the request; `new_id` creates the id of the decision if the body has none."""
        return RankRequest(
            self.event_id or new_id(),
            _objects(self.context_features),
            [action.id for action in self.actions],
            [_objects(action.features) for action in self.actions],
            frozenset(self.excluded_actions or ()),
            bool(self.defer_activation),
        )


class RankedAction(msgspec.Struct):
    """An action of an answer: its id, and the probability with which it was chosen."""

    id: str
    probability: float


class PersonalizerAnswer(msgspec.Struct, rename="camel"):
    """The answer of Personalizer to a rank: all actions, the chosen one first."""

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class PersonalizerReward(msgspec.Struct):
    """The body of ``POST /personalizer/v1.0/events/{eventId}/reward``."""

    value: float


class PersonalizerSlot(msgspec.Struct, rename="camel"):
    """A slot of Personalizer: its id, its baseline, objects of features, and excluded actions."""

    id: str
    baseline_action: str
    features: Objects = None
    excluded_actions: list[str] | None = None


class PersonalizerSlotsRank(msgspec.Struct, rename="camel"):
    """The body of ``POST /personalizer/v1.1-preview.1/multislot/rank``."""

    actions: list[RankableAction]
    slots: list[PersonalizerSlot]
    context_features: Objects = None
    event_id: str | None = None
    defer_activation: bool | None = None

    def rank_request(self, new_id: Callable[[], str]) -> SlotsRankRequest:
        """Return the request; `new_id` creates the id of the event if the body has none."""
        return SlotsRankRequest(
            self.event_id or new_id(),
            _objects(self.context_features),
            [action.id for action in self.actions],
            [_objects(action.features) for action in self.actions],
            [
                SlotRequest(
                    slot.id, _objects(slot.features), slot.baseline_action, slot.excluded_actions or ()
                )
                for slot in self.slots
            ],
            deferred=bool(self.defer_activation),
        )


class SlotResponse(msgspec.Struct, rename="camel"):
    """A slot of an answer: its id, and the id of the action to show in it."""

    id: str
    reward_action_id: str


class PersonalizerSlotsAnswer(msgspec.Struct, rename="camel"):
    """The answer of Personalizer to a rank of slots."""

    slots: list[SlotResponse]
    event_id: str


class SlotReward(msgspec.Struct, rename="camel"):
    """A reward of a slot."""

    slot_id: str
    value: float


class PersonalizerSlotsReward(msgspec.Struct):
    """The body of ``POST /personalizer/v1.1-preview.1/multislot/events/{eventId}/reward``."""

    reward: list[SlotReward]


class Rank(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rank``.

    Attributes
    ----------
    context : mapping
        Features of the user or situation: namespaces, and features without a namespace.
    actions : mapping or list
        Features of each action by id, or a list, whose ids are ``"0"``, ``"1"`` and so on. A number ``cost``
        beside them is the cost of the action.
    event_id : str
        The id of the decision; by default a random one.
    excluded : list of str
        Ids of actions that must not be chosen.
    deferred : bool
        The decision has to be activated before it is learnt.
    unit : str
        What an experiment assigns to an arm, such as the id of a user; by default each event for itself.
    """

    actions: dict[str, Features] | list[Features]
    context: Features = msgspec.field(default_factory=dict)
    event_id: str | None = None
    excluded: list[str] = msgspec.field(default_factory=list)
    deferred: bool = False
    unit: str = ""

    def rank_request(self, new_id: Callable[[], str]) -> RankRequest:
        """Return the request; `new_id` creates the id of the decision if the body has none."""
        named = _named(self.actions)
        if unknown := [action for action in self.excluded if action not in named]:
            raise RefusedError(f"excluded names {unknown[0]!r}, which is none of the actions")
        return RankRequest(
            new_id() if self.event_id is None else self.event_id,
            [self.context],
            list(named),
            [[features] for features in named.values()],
            frozenset(self.excluded),
            self.deferred,
            self.unit,
        )


class Answer(msgspec.Struct):
    """The answer to ``POST /v1/rank``.

    Attributes
    ----------
    event_id : str
        The id of the decision, which a reward names.
    action : str
        The id of the chosen action.
    index : int
        Its index in the order of the request.
    probability : float
        The probability with which the action was chosen.
    pmf : mapping of str to float
        The probabilities of all actions, by id.
    model : str
        The name of the model that ranked.
    """

    event_id: str
    action: str
    index: int
    probability: float
    pmf: dict[str, float]
    model: str


class RankBatch(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rank:batch``: many ranks, each like the body of ``POST /v1/rank``."""

    decisions: Annotated[list[Rank], msgspec.Meta(min_length=1)]


class RawBatch(msgspec.Struct, forbid_unknown_fields=True):
    """A `RankBatch` whose ranks are not decoded yet, because each fails alone."""

    decisions: list[msgspec.Raw]


class BatchDecision(msgspec.Struct, omit_defaults=True):
    """The answer to one rank of a batch.

    Attributes
    ----------
    status : int
        The status that ``POST /v1/rank`` would have.
    answer : Answer
        The answer, with status 200.
    error : mapping
        The ``error`` of the body that ``POST /v1/rank`` would have, with any other status.
    """

    status: int
    answer: Answer | None = None
    error: dict[str, Any] | None = None


class BatchAnswer(msgspec.Struct):
    """The answer to ``POST /v1/rank:batch``: the answers to its ranks, in order."""

    decisions: list[BatchDecision]


class OwnSlot(msgspec.Struct, forbid_unknown_fields=True):
    """A slot of ``POST /v1/rank/slots``.

    Attributes
    ----------
    id : str
        The id of the slot, which a reward names.
    features : mapping
        Features of the slot.
    baseline : str
        The id of the action that the slot shows without a model; by default the first one that is left.
    excluded : list of str
        Ids of actions that the slot must not show.
    """

    id: str
    features: Features = msgspec.field(default_factory=dict)
    baseline: str = ""
    excluded: list[str] = msgspec.field(default_factory=list)


class SlotsRank(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/rank/slots``; slots are filled in order, and each action is shown once."""

    actions: dict[str, Features] | list[Features]
    slots: list[OwnSlot]
    context: Features = msgspec.field(default_factory=dict)
    event_id: str | None = None
    deferred: bool = False
    unit: str = ""

    def rank_request(self, new_id: Callable[[], str]) -> SlotsRankRequest:
        """Return the request; `new_id` creates the id of the event if the body has none."""
        named = _named(self.actions)
        return SlotsRankRequest(
            new_id() if self.event_id is None else self.event_id,
            [self.context],
            list(named),
            [[features] for features in named.values()],
            [SlotRequest(slot.id, [slot.features], slot.baseline, slot.excluded) for slot in self.slots],
            self.unit,
            self.deferred,
        )


class SlotAnswer(msgspec.Struct):
    """A slot of an answer; ``pmf`` has the actions that were left for the slot, and their probabilities."""

    id: str
    action: str
    probability: float
    pmf: dict[str, float]


class SlotsAnswer(msgspec.Struct):
    """The answer to ``POST /v1/rank/slots``: the slots in order, and the name of the model that ranked."""

    event_id: str
    slots: list[SlotAnswer]
    model: str


class Reward(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/reward``; a reward that is sent again with the same key counts once.

    ``slot`` is the id of a slot, for a rank of slots. ``cost`` is what the decision has cost; the first cost
    of a decision counts, and a body may have a cost alone.
    """

    event_id: str
    reward: float | msgspec.UnsetType = msgspec.UNSET
    key: str = ""
    slot: str = ""
    cost: float | msgspec.UnsetType = msgspec.UNSET


class MetricValue(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/metric``: a value of a metric of ``--guardrails`` for a decision.

    A value that is sent again with the same key counts once.
    """

    event_id: str
    metric: str
    value: float
    key: str = ""
    slot: str = ""


class Settings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The body of ``PATCH /v1/settings``: settings to change; a wait is in seconds, or like ``PT10M``.

    ``reward_range`` is two numbers, or null for a range that is learnt. ``budget`` is a mean cost of a
    decision, or null for none.
    """

    reward_wait: float | str | msgspec.UnsetType = msgspec.UNSET
    default_reward: float | msgspec.UnsetType = msgspec.UNSET
    aggregation: str | msgspec.UnsetType = msgspec.UNSET
    mode: str | msgspec.UnsetType = msgspec.UNSET
    reward_range: tuple[float, float] | msgspec.UnsetType | None = msgspec.UNSET
    max_finished: int | msgspec.UnsetType = msgspec.UNSET
    control: float | msgspec.UnsetType = msgspec.UNSET
    guardrails: list[str] | msgspec.UnsetType = msgspec.UNSET
    learn_at: str | msgspec.UnsetType = msgspec.UNSET
    budget: float | msgspec.UnsetType | None = msgspec.UNSET


class ModelChoice(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/models/use``: the name of a model of the history."""

    name: str


class Canary(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/models/canary``: a model of the history, and its share of the units, or 0."""

    name: str = ""
    share: float = 0.0


class Evaluate(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``POST /v1/evaluate``: the flags of each policy to evaluate."""

    policies: Annotated[list[str], msgspec.Meta(min_length=1, max_length=8)]


class Problem(msgspec.Struct):
    """The body of every error, in Personalizer's form: ``error`` with a ``code`` and a ``message``."""

    error: dict[str, Any]


def personalizer_answer(ranked: Ranked) -> PersonalizerAnswer:
    """Return an answer in the format of Personalizer."""
    ranking = [RankedAction(*pair) for pair in zip(ranked.ids, ranked.probabilities, strict=True)]
    return PersonalizerAnswer(ranking, ranked.event_id, ranked.ids[0])


def answer_to(ranked: Ranked) -> Answer:
    """Return an answer in the format of ``/v1/rank``."""
    in_order = sorted(zip(ranked.actions, ranked.ids, ranked.probabilities, strict=True))
    pmf = {name: probability for _, name, probability in in_order}
    return Answer(
        ranked.event_id, ranked.ids[0], ranked.actions[0], ranked.probabilities[0], pmf, ranked.model
    )


def personalizer_slots_answer(asked: SlotsRankRequest, ranked: Sequence[Ranked]) -> PersonalizerSlotsAnswer:
    """Return the answer for slots in the format of Personalizer."""
    both = zip(asked.slots, ranked, strict=True)
    return PersonalizerSlotsAnswer(
        [SlotResponse(slot.id, ranking.ids[0]) for slot, ranking in both], asked.event_id
    )


def slots_answer(asked: SlotsRankRequest, ranked: Sequence[Ranked]) -> SlotsAnswer:
    """Return the answer for slots in the format of ``/v1/rank/slots``."""
    slots = []
    for slot, each in zip(asked.slots, ranked, strict=True):
        pmf = dict(zip(each.ids, each.probabilities, strict=True))
        slots.append(SlotAnswer(slot.id, each.ids[0], each.probabilities[0], pmf))
    return SlotsAnswer(asked.event_id, slots, ranked[0].model)


class LoopOptions(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PUT /v1/loops/NAME``: options as for `serve`, or "" for those of the service."""

    options: str = ""


class LoopChanges(msgspec.Struct, forbid_unknown_fields=True):
    """The body of ``PATCH /v1/loops/NAME``."""

    state: State | None = None
    options: str | None = None


class LoopSummary(msgspec.Struct, frozen=True):
    """A loop of a service.

    Attributes
    ----------
    name, state, options : str
        Its name, whether it is active, paused or archived, and its options.
    open : bool
        The model is in memory.
    error : str
        The reason why it cannot be opened, decide or learn, or "".
    ranked, rewarded, learnt, pending : int
        Its decisions, rewards, learnt and waiting decisions, as of its closing if it is closed.
    """

    name: str
    state: State
    open: bool
    error: str
    options: str
    ranked: int
    rewarded: int
    learnt: int
    pending: int


class RemovedLoop(msgspec.Struct, frozen=True):
    """The answer to ``DELETE /v1/loops/NAME``: where the folder of the loop is now."""

    folder: str


def _named(actions: dict[str, Features] | list[Features]) -> dict[str, Features]:
    if isinstance(actions, list):
        if any(action.keys() == {"id", "features"} for action in actions):
            raise RefusedError(
                "actions have the members id and features of Personalizer: send them to "
                "/personalizer/v1.0/rank, or send an object with the features of each action by its id"
            )
        return {str(index): action for index, action in enumerate(actions)}
    return actions


def _objects(features: Objects) -> list[Features]:
    if features is None:
        return []
    return features if isinstance(features, list) else [features]


_LOG = logging.getLogger("onlineauto.service")
_CODES: Final = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "ResourceNotFound",
    405: "ResourceNotFound",
    408: "Timeout",
    409: "Conflict",
    410: "Gone",
    413: "TooLarge",
    415: "UnsupportedMediaType",
    422: "Conflict",
    429: "TooManyRequests",
    431: "TooLarge",
    500: "InternalServerError",
    501: "NotImplemented",
    502: "BadGateway",
    503: "Unavailable",
    507: "InsufficientStorage",
}
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_TEXT: Final = "text/plain; charset=utf-8"
_ENCODER: Final = msgspec.json.Encoder()


class Reply(NamedTuple):
    """The answer to a request: its status, body and headers; `stream` yields what follows the body."""

    status: int
    body: bytes = b""
    headers: tuple[tuple[bytes, bytes], ...] = ()
    stream: AsyncGenerator[bytes, None] | None = None
    is_whole: bool = False  # Pieces of the stream wait for a client that reads slowly; else they are skipped.

    @classmethod
    def json(cls, value: object, status: int = 200) -> Reply:
        """Return an answer whose body is a value as JSON."""
        return cls(status, _ENCODER.encode(value), JSON)

    @classmethod
    def text(cls, text: str, status: int = 200) -> Reply:
        """Return an answer whose body is plain text."""
        return cls(status, text.encode(), content_type(_TEXT))


def content_type(kind: str) -> tuple[tuple[bytes, bytes], ...]:
    """Return the header with a media type."""
    return ((b"content-type", kind.encode()),)


JSON: Final = content_type("application/json")


def reply_to_error(error: Exception, endpoint: str) -> Reply:
    """Return the answer to a request that has raised an error; an unexpected error is logged."""
    if isinstance(error, RefusedError):
        return problem(str(error), error.status, error.retry_after)
    if isinstance(error, OSError):  # an OutputError too
        cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
        full = cause.errno in _FULL
        _LOG.error(
            "the disk cannot be written: %s", error, extra={"event": "not_written", "endpoint": endpoint}
        )
        why = "the disk is full" if full else f"a file cannot be read or written: {cause.strerror}"
        return problem(f"{why}; try again later", 507 if full else 503, 10.0)
    if isinstance(error, OnlineautoError | msgspec.MsgspecError | UnicodeError | RecursionError):
        status = 422 if isinstance(error, OptionError) else 400
        return problem(str(error) or "the body is nested too deeply", status)
    _LOG.error("an endpoint failed", exc_info=error, extra={"event": "failed", "endpoint": endpoint})
    return problem("the service has failed; its log has the reason", 500)


def problem(message: str, status: int, retry_after: float | None = None) -> Reply:
    """Return the answer that reports why a request is rejected."""
    headers = JSON
    if retry_after is not None:
        headers += ((b"retry-after", b"%d" % max(round(retry_after), 1)),)
    if status == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    text = " ".join(message.split())[:1000]
    return Reply.json(Problem({"code": _CODES.get(status, "Error"), "message": text}), status)._replace(
        headers=headers
    )
