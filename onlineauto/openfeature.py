"""OpenFeature provider: evaluating a flag is a decision of a service, and tracking is its reward.

It needs OpenFeature's SDK and the client, ``pip install '.[openfeature]'``.

>>> from onlineauto.openfeature import Flag, OnlineautoProvider
>>> from onlineauto.service.client import Client
>>> flags = {"layout": Flag({"grid": "a grid", "list": "a list"})}
>>> provider = OnlineautoProvider(Client("http://127.0.0.1:8001"), flags)
>>> provider.get_metadata().name
'onlineauto'
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

    Attributes
    ----------
    variants : mapping of str to value
        The value of each variant, the baseline first.
    features : mapping of str to mapping
        Features of variants, which say what they have in common; by default the name of the variant.

    Raises
    ------
    InputError
        There are no variants, their values have different types, or features are not those of a variant.
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
    evaluations agree; a tracked event with the same ``eventId`` rewards the decisions of all flags, and one
    with ``EVENTID/FLAG``, which the metadata of an evaluation have, that decision only.

    Without an `eventId`, only decisions of this process are found: with several processes, give each request
    an `eventId`, and track with it. What is not recorded is logged once for each event, not raised, such as a
    metric that no guardrail names. The methods that end in ``_async`` wait in a thread.

    Parameters
    ----------
    client : Client
        The client of the service.
    flags : mapping of str to Flag
        The flags by key.
    reward_event : str
        The tracked event that is the reward. Every other tracked event is a metric of its name.
    remembered : int
        The number of targeting keys whose latest decisions are remembered.
    pause : float
        Seconds without requests after the service did not answer: evaluations return the default at once.

    Attributes
    ----------
    unmatched : int
        The number of tracked events for which no decision was found.

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
        self.unmatched = 0
        self._remembered, self._pause, self._away_until = remembered, pause, 0.0
        self._warned: set[tuple[str, str]] = set()
        self._latest: OrderedDict[str, dict[str, ServiceDecision]] = OrderedDict()
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
        ids = (where.attributes.get("eventId") for where in (details, context) if where is not None)
        event_id = next((found for found in ids if found is not None), None)
        decisions: Sequence[ServiceDecision | str]
        if event_id is not None:
            decisions = self._ids_of(str(event_id))
        else:
            key = context.targeting_key if context else None
            with self._lock:
                decisions = [*self._latest.get(key or "", {}).values()]
                self.unmatched += not decisions
            if not decisions:
                self._warn(
                    "the tracked event %s is not recorded: this process has made no decision for %s. With "
                    "several processes, give each request an eventId, and track with it",
                    tracking_event_name,
                    f"the targeting key {key!r}" if key else "an event without a targeting key",
                )
        for decision in decisions:
            try:
                if tracking_event_name == self.reward_event:
                    self.client.reward(decision, value)
                else:
                    self.client.metric(decision, tracking_event_name, value)
            except InputError as error:
                self._warn("the tracked event %s is not recorded: %s", tracking_event_name, error)

    def _warn(self, message: str, event: str, reason: object) -> None:
        """Log why an event is not recorded, once for each event and message."""
        if (message, event) not in self._warned:
            self._warned.add((message, event))
            _LOG.warning(message, event, reason)

    def _ids_of(self, event_id: str) -> list[str]:
        """Return the id of one decision, or the ids of the decisions of all flags for an event."""
        if "/" in event_id and event_id.rpartition("/")[2] in self.flags:
            return [event_id]
        return [f"{event_id}/{key}" for key in self.flags]

    def _resolve(
        self,
        key: str,
        default: _Value,
        context: EvaluationContext | None,
        kind: type[Any] | tuple[type[Any], ...],
    ) -> FlagResolutionDetails[_Value]:
        flag = self.flags.get(key)
        if flag is None:
            return _failed(default, ErrorCode.FLAG_NOT_FOUND, f"the provider has no flag {key!r}")
        for name, value in flag.variants.items():
            if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
                message = f"variant {name!r} of flag {key!r} is {value!r}, which has another type"
                return _failed(default, ErrorCode.TYPE_MISMATCH, message)
        if time.monotonic() < self._away_until:
            return _failed(default, ErrorCode.PROVIDER_NOT_READY, "the service does not answer")
        attributes = dict(context.attributes) if context else {}
        event_id = attributes.pop("eventId", None)
        unit = (context.targeting_key if context else None) or ""
        actions = {name: flag.features.get(name, {key: {name: 1}}) for name in flag.variants}
        try:
            decision = self.client.rank(
                _features(attributes),
                actions,
                event_id=None if event_id is None else f"{event_id}/{key}",
                unit=unit,
            )
        except InputError as error:
            return _failed(default, ErrorCode.GENERAL, str(error))
        if decision.fallback:
            self._away_until = time.monotonic() + self._pause
            return _failed(default, ErrorCode.PROVIDER_NOT_READY, "the service does not answer")
        self._remember(unit, key, decision)
        return FlagResolutionDetails(
            flag.variants[decision.action],
            reason=Reason.SPLIT,
            variant=decision.action,
            flag_metadata={"eventId": decision.event_id, "probability": decision.probability},
        )

    def _remember(self, unit: str, key: str, decision: ServiceDecision) -> None:
        if unit:
            with self._lock:
                self._latest.setdefault(unit, {})[key] = decision
                self._latest.move_to_end(unit)
                if len(self._latest) > self._remembered:
                    self._latest.popitem(last=False)


def _kind_of(value: Any) -> type[Any] | None:
    """Return the type of a variant, in which numbers are one type; None if a flag cannot have it."""
    kinds = {bool: bool, str: str, int: float, float: float, dict: dict, list: dict}
    return next((kinds[kind] for kind in kinds if isinstance(value, kind)), None)


def _failed(default: _Value, code: ErrorCode, message: str) -> FlagResolutionDetails[_Value]:
    return FlagResolutionDetails(default, error_code=code, error_message=message, reason=Reason.ERROR)


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
