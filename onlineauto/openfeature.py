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
import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagResolutionDetails, Reason
from openfeature.provider import AbstractProvider, Metadata

from onlineauto.errors import InputError

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
    """

    variants: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class OnlineautoProvider(AbstractProvider):
    """Provider of flags whose variants a service chooses. Threads may share a provider.

    Attributes of the evaluation context are features: a mapping is a namespace, and all others are in the
    namespace ``user``. The targeting key is no feature: it is the unit of experiments, and finds the
    decisions that a tracked event rewards, which are the latest one of each flag for this key.

    With an attribute ``eventId`` in the context, the id of a decision is ``EVENTID/FLAG``, so that repeated
    evaluations agree; a tracked event with the same ``eventId`` rewards the decisions of all flags, and one
    with ``EVENTID/FLAG``, which the metadata of an evaluation have, that decision only.

    The service rejects a metric that no guardrail names. What it rejects is logged, not raised. The methods
    that end in ``_async`` wait in a thread.

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
    """

    def __init__(
        self,
        client: Client,
        flags: Mapping[str, Flag],
        *,
        reward_event: str = "reward",
        remembered: int = 10_000,
    ) -> None:
        super().__init__()
        self.client, self.flags, self.reward_event = client, flags, reward_event
        self._remembered = remembered
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
        return self._resolve(flag_key, default_value, evaluation_context, (float, int))

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
        details = tracking_event_details
        value = 1.0 if details is None or details.value is None else float(details.value)
        event_id = None if details is None else details.attributes.get("eventId")
        decisions: Sequence[ServiceDecision | str]
        if event_id is not None:
            decisions = self._ids_of(str(event_id))
        else:
            key = evaluation_context.targeting_key if evaluation_context else None
            with self._lock:
                decisions = [*self._latest.get(key or "", {}).values()]
        for decision in decisions:
            try:
                if tracking_event_name == self.reward_event:
                    self.client.reward(decision, value)
                else:
                    self.client.metric(decision, tracking_event_name, value)
            except InputError as error:
                _LOG.warning("the tracked event %s is not recorded: %s", tracking_event_name, error)

    def _ids_of(self, event_id: str) -> list[str]:
        """Return the id of one decision, or the ids of the decisions of all flags for an event."""
        if event_id.rpartition("/")[2] in self.flags:
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
