"""OpenFeature provider: evaluating a flag is a decision of a service, and tracking is its reward.

It needs OpenFeature's SDK and the client, ``pip install '.[openfeature]'``.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata

from onlineauto.errors import InputError, short_repr

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openfeature.evaluation_context import EvaluationContext
    from openfeature.hook import Hook
    from openfeature.track import TrackingEventDetails

    from onlineauto.service.client import Client, ServiceDecision

__all__ = ["Flag", "OnlineautoProvider"]

_LOG = logging.getLogger("onlineauto.service")
_Value = TypeVar("_Value")


@dataclass(frozen=True)
class Flag:
    """The variants of a flag, of which a service chooses one.

    >>> Flag({"grid": 12, "list": 40}, features={"grid": {"images": True}}).variants["list"]
    40

    Attributes
    ----------
    variants : mapping of str to value
        The value of each variant, the baseline first.
    features : mapping of str to mapping
        Features of variants, which say what they have in common; by default the name of the variant.

    Raises
    ------
    InputError
        There are no variants, their names are not texts, their values have different types, or features are
        not those of a variant.
    """

    variants: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the variants and their features."""
        if not self.variants or not isinstance(self.variants, Mapping):
            raise InputError(
                f"variants of a flag are {short_repr(self.variants)}: give the value of each variant by its "
                "name, the baseline first"
            )
        if not all(isinstance(name, str) for name in self.variants):
            raise InputError(
                f"variants of a flag are {short_repr(dict(self.variants))}: give texts as their names"
            )
        kinds = {name: _kind_of(value) for name, value in self.variants.items()}
        if None in kinds.values() or len(set(kinds.values())) > 1:
            raise InputError(
                f"variants of a flag are {short_repr(dict(self.variants))}: give values of one type, "
                "which are truth values, texts, numbers, or mappings and lists"
            )
        if not isinstance(self.features, Mapping):
            raise InputError(
                f"features of a flag are {short_repr(self.features)}: give those of each variant"
            )
        for name, features in self.features.items():
            if name not in self.variants:
                raise InputError(
                    f"features of {name!r}: the variants are {', '.join(map(str, self.variants))}"
                )
            if not isinstance(features, Mapping):
                raise InputError(f"features of {name!r} are {short_repr(features)}: give a mapping")


class OnlineautoProvider(AbstractProvider):
    """Provider of flags whose variants a service chooses. Threads may share a provider.

    Attributes of the evaluation context are features: a mapping is a namespace, and all others are in the
    namespace ``user``. The targeting key is no feature: it is the unit of experiments, and finds the
    decisions that a tracked event rewards, which are the latest one of each flag for this key.

    With an attribute ``eventId`` in the context, the id of a decision is ``EVENTID/FLAG``, so that repeated
    evaluations with the same attributes agree; a tracked event with the same ``eventId`` rewards the flags
    that this process has evaluated with it, or all flags if there are none, and one with ``EVENTID/FLAG``,
    which the metadata of an evaluation have, that decision only. A flag that had its default is not rewarded.

    Without an `eventId`, only decisions of this process are found: with several processes, give each request
    an `eventId`, and track with it. What is not recorded is logged once for each event, not raised, such as a
    metric that no guardrail names. `track` waits for the service. The methods that end in ``_async`` wait in
    a thread.

    >>> from onlineauto.openfeature import Flag, OnlineautoProvider
    >>> from onlineauto.service.client import Client
    >>> flags = {"layout": Flag({"grid": "a grid", "list": "a list"})}
    >>> provider = OnlineautoProvider(Client("http://127.0.0.1:8001"), flags)
    >>> provider.get_metadata().name
    'onlineauto'

    Parameters
    ----------
    client : Client
        The client of the service.
    flags : mapping of str to Flag
        The flags by key.
    reward_event : str
        The tracked event that is the reward. Every other tracked event is a metric of its name.
    remembered : int
        The number of targeting keys, and of event ids, whose latest decisions are remembered.
    pause : float
        Seconds without requests after the service did not answer: evaluations return the default at once, and
        tracked events are lost.

    Attributes
    ----------
    unmatched : int
        The number of tracked events for which no decision was found.
    lost : int
        The number of rewards and metrics that the service did not record because it was away.

    Raises
    ------
    InputError
        The client is not a `Client`, or the flags are not a mapping of `Flag`.
    """

    def __init__(
        self,
        client: Client,
        flags: Mapping[str, Flag],
        *,
        reward_event: str = "reward",
        remembered: int = 10_000,
        pause: float = 5.0,
    ) -> None:
        super().__init__()
        rank = getattr(client, "rank", None)
        if not callable(rank) or inspect.iscoroutinefunction(rank):
            raise InputError(
                f"the client is {short_repr(client)}: give onlineauto.service.client.Client(URL)"
            )
        given: Any = flags
        if not isinstance(given, Mapping) or not all(isinstance(flag, Flag) for flag in given.values()):
            raise InputError(f"flags are {short_repr(given)}: give a Flag for each key")
        self.client, self.flags, self.reward_event = client, flags, reward_event
        self.unmatched = self.lost = 0
        self._remembered, self._pause, self._away_until = remembered, pause, 0.0
        self._warned: set[tuple[str, str]] = set()
        self._latest: OrderedDict[str, dict[str, ServiceDecision | None]] = OrderedDict()  # by targeting key
        self._of_event: OrderedDict[str, dict[str, ServiceDecision | None]] = OrderedDict()
        self._lock = Lock()

    def get_metadata(self) -> Metadata:
        """Return the provider's name."""
        return Metadata("onlineauto")

    def get_provider_hooks(self) -> list[Hook]:
        """Return no hooks."""
        return []

    def resolve_boolean_details(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Return the value of the variant that the service chose, or the default with an error code."""
        return self._resolve(flag_key, default_value, evaluation_context, bool)

    def resolve_string_details(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """Return the value of the variant that the service chose, or the default with an error code."""
        return self._resolve(flag_key, default_value, evaluation_context, str)

    def resolve_integer_details(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """Return the value of the variant that the service chose, or the default with an error code."""
        return self._resolve(flag_key, default_value, evaluation_context, int)

    def resolve_float_details(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """Return the value of the variant that the service chose, or the default with an error code."""
        details = self._resolve(flag_key, default_value, evaluation_context, (float, int))
        if isinstance(details.value, int):
            details.value = float(details.value)
        return details

    def resolve_object_details(
        self, flag_key: str, default_value: Any, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Any]:
        """Return the value of the variant that the service chose, or the default with an error code."""
        return self._resolve(flag_key, default_value, evaluation_context, (dict, list))

    async def resolve_boolean_details_async(
        self, flag_key: str, default_value: bool, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[bool]:
        """Return the same as `resolve_boolean_details`."""
        return await asyncio.to_thread(
            self.resolve_boolean_details, flag_key, default_value, evaluation_context
        )

    async def resolve_string_details_async(
        self, flag_key: str, default_value: str, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[str]:
        """Return the same as `resolve_string_details`."""
        return await asyncio.to_thread(
            self.resolve_string_details, flag_key, default_value, evaluation_context
        )

    async def resolve_integer_details_async(
        self, flag_key: str, default_value: int, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[int]:
        """Return the same as `resolve_integer_details`."""
        return await asyncio.to_thread(
            self.resolve_integer_details, flag_key, default_value, evaluation_context
        )

    async def resolve_float_details_async(
        self, flag_key: str, default_value: float, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[float]:
        """Return the same as `resolve_float_details`."""
        return await asyncio.to_thread(
            self.resolve_float_details, flag_key, default_value, evaluation_context
        )

    async def resolve_object_details_async(
        self, flag_key: str, default_value: Any, evaluation_context: EvaluationContext | None = None
    ) -> FlagResolutionDetails[Any]:
        """Return the same as `resolve_object_details`."""
        return await asyncio.to_thread(
            self.resolve_object_details, flag_key, default_value, evaluation_context
        )

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Reward the latest decisions of a targeting key, with the value of the details, or 1."""
        details, context = tracking_event_details, evaluation_context
        try:
            value = 1.0 if details is None or details.value is None else float(details.value)
        except (TypeError, ValueError, OverflowError) as error:
            self._warn("the tracked event %s is not recorded: %s", tracking_event_name, error)
            return
        given = (_id_of(where.attributes.get("eventId")) for where in (details, context) if where is not None)
        event_id, unit = next(filter(None, given), ""), _id_of(context.targeting_key if context else None)
        decisions: Sequence[ServiceDecision | str]
        with self._lock:
            if event_id:
                decisions = self._ids_of(event_id)
            else:
                decisions = [decision for decision in self._latest.get(unit, {}).values() if decision]
            self.unmatched += not decisions
        if not decisions:
            where = f"the eventId {event_id!r}" if event_id else f"the targeting key {unit!r}"
            self._warn(
                "the tracked event %s is not recorded: this process has no decision for %s. With several "
                "processes, give each request an eventId, and track with it",
                tracking_event_name,
                where if event_id or unit else "an event without a targeting key",
            )
        for decision in decisions:
            try:
                self._send(tracking_event_name, decision, value)
            except InputError as error:
                self._warn("the tracked event %s is not recorded: %s", tracking_event_name, error)

    def _send(self, event: str, decision: ServiceDecision | str, value: float) -> None:
        """Send a reward or metric, or count it as lost while the service is away."""
        if time.monotonic() >= self._away_until:
            if event == self.reward_event:
                recorded = self.client.reward(decision, value)
            else:
                recorded = self.client.metric(decision, event, value)
            if recorded:
                return
            self._away_until = time.monotonic() + self._pause
        with self._lock:
            self.lost += 1
        self._warn("the tracked event %s is lost: %s", event, "the service does not answer")

    def _warn(self, message: str, event: str, reason: object) -> None:
        """Log what went wrong with an event or a flag, once for each and message."""
        if (message, event) not in self._warned:
            self._warned.add((message, event))
            _LOG.warning(message, event, reason)

    def _ids_of(self, event_id: str) -> list[str]:
        """Return the id of one decision, or those of the flags evaluated here with an event id, or all."""
        if "/" in event_id and event_id.rpartition("/")[2] in self.flags:
            return [event_id]
        known = self._of_event.get(event_id, {})
        keys = [key for key in self.flags if known.get(key)] or [
            key for key in self.flags if key not in known
        ]
        return [f"{event_id}/{key}" for key in keys]

    def _resolve(
        self,
        key: str,
        default: _Value,
        context: EvaluationContext | None,
        kind: type[Any] | tuple[type[Any], ...],
    ) -> FlagResolutionDetails[_Value]:
        attributes = dict(context.attributes) if context else {}
        event_id = _id_of(attributes.pop("eventId", None))
        unit = _id_of(context.targeting_key if context else None)

        def failed(code: ErrorCode, message: str) -> FlagResolutionDetails[_Value]:
            self._remember(unit, event_id, key, None)
            if code is not ErrorCode.PROVIDER_NOT_READY:
                self._warn("the flag %s has its default: %s", key, message)
            return FlagResolutionDetails(default, error_code=code, error_message=message, reason=Reason.ERROR)

        flag = self.flags.get(key)
        if flag is None:
            return failed(ErrorCode.FLAG_NOT_FOUND, f"the provider has no flag {key!r}")
        for name, value in flag.variants.items():
            if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
                message = f"variant {name!r} of flag {key!r} is {value!r}, which has another type"
                return failed(ErrorCode.TYPE_MISMATCH, message)
        if time.monotonic() < self._away_until:
            return failed(ErrorCode.PROVIDER_NOT_READY, "the service does not answer")
        actions = {name: flag.features.get(name, {key: {name: 1}}) for name in flag.variants}
        try:
            decision = self.client.rank(
                _features(attributes),
                actions,
                event_id=f"{event_id}/{key}" if event_id else None,
                unit=unit,
            )
        except InputError as error:
            return failed(ErrorCode.GENERAL, str(error))
        if decision.fallback:
            self._away_until = time.monotonic() + self._pause
            return failed(ErrorCode.PROVIDER_NOT_READY, "the service does not answer")
        self._remember(unit, event_id, key, decision)
        return FlagResolutionDetails(
            flag.variants[decision.action],
            reason=Reason.SPLIT,
            variant=decision.action,
            flag_metadata={"eventId": decision.event_id, "probability": decision.probability},
        )

    def _remember(self, unit: str, event_id: str, key: str, decision: ServiceDecision | None) -> None:
        """Remember the decision of a flag, or that it had its default."""
        with self._lock:
            for latest, owner in ((self._latest, unit), (self._of_event, event_id)):
                if owner:
                    latest.setdefault(owner, {})[key] = decision
                    latest.move_to_end(owner)
                    if len(latest) > self._remembered:
                        latest.popitem(last=False)


def _id_of(value: object) -> str:
    """Return an id as a text; "" if there is none."""
    return "" if value is None else str(value)


def _kind_of(value: Any) -> type[Any] | None:
    """Return the type of a variant, in which numbers are one type; None if a flag cannot have it."""
    kinds = {bool: bool, str: str, int: float, float: float, dict: dict, list: dict}
    return next((kinds[kind] for kind in kinds if isinstance(value, kind)), None)


def _features(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context for the service: mappings are namespaces, all else is in the namespace user.

    >>> _features({"plan": "pro", "user": {"age": 3}})
    {'user': {'plan': 'pro', 'age': 3}}
    """
    user = {name: _feature(value) for name, value in attributes.items() if not isinstance(value, Mapping)}
    context = {name: _feature(value) for name, value in attributes.items() if isinstance(value, Mapping)}
    user |= context.pop("user", {})
    return {"user": user} | context if user else context


def _feature(value: Any) -> Any:
    """Return a value of an attribute with texts in place of dates and times."""
    if isinstance(value, Mapping):
        return {name: _feature(part) for name, part in value.items()}
    return value.isoformat() if isinstance(value, date) else value
