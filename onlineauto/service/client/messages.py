"""Messages of clients, without any I/O: bodies, answers, waits between attempts, the fallback."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec

from onlineauto.errors import InputError
from onlineauto.formats.mappings.values import plain, plain_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

_AGAIN: Final = {409, 429, 500, 502, 503, 504}


class ServiceDecision(msgspec.Struct, frozen=True):
    """A decision of the service, or of the client while the service is away.

    Attributes
    ----------
    event_id : str
        The id, which a reward names.
    action : str
        The id of the action; of a list of actions, its index as a text.
    index : int
        The index of the action.
    probability : float
        The probability with which the action was chosen.
    pmf : mapping of str to float
        The probabilities of all actions.
    model : str
        The name of the model that decided.
    fallback : bool
        True if the service was away: the action is the baseline, the first one, and the log has no record.
    """

    event_id: str
    action: str
    index: int
    probability: float
    pmf: dict[str, float]
    model: str
    fallback: bool = False


class Retry(msgspec.Struct, frozen=True):
    """The number of attempts, and the waits between them: doubled each time, or as the service says.

    Attributes
    ----------
    attempts : int
        Maximum number of attempts.
    wait : float
        Seconds before the second attempt.
    longest : float
        Maximum number of seconds between two attempts.
    """

    attempts: int = 3
    wait: float = 0.05
    longest: float = 2.0

    def seconds(self, attempt: int, retry_after: str | None) -> float:
        """Return the seconds to wait after an attempt, counted from 0.

        >>> [Retry().seconds(attempt, None) for attempt in (0, 1, 9)], Retry().seconds(0, "1")
        ([0.05, 0.1, 2.0], 1.0)
        """
        if retry_after is not None and retry_after.isdigit():
            return min(float(retry_after), self.longest)
        return min(self.wait * 2.0**attempt, self.longest)


def must_retry(status: int) -> bool:
    """Return whether the same request may succeed later."""
    return status in _AGAIN


def rank_body(
    context: Mapping[str, Any],
    actions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    event_id: str | None,
    excluded: Sequence[str],
    deferred: bool,
    unit: str = "",
) -> tuple[str, bytes]:
    """Return the id of a decision and the body of its request, which may be sent again.

    Raises
    ------
    InputError
        A value cannot be a feature.
    """
    event_id = event_id or secrets.token_hex(16)
    body: dict[str, Any] = {
        "event_id": event_id,
        "context": plain_tree(context, "context"),
        "actions": plain_tree(actions, "actions"),
    }
    if excluded:
        body["excluded"] = list(excluded)
    if deferred:
        body["deferred"] = True
    if unit:
        body["unit"] = unit
    return event_id, msgspec.json.encode(body)


def reward_body(decision: ServiceDecision | str, value: float, *, key: str) -> bytes | None:
    """Return the body that rewards a decision; None if the decision is a fallback."""
    if isinstance(decision, ServiceDecision):
        if decision.fallback:
            return None
        decision = decision.event_id
    return msgspec.json.encode({"event_id": decision, "reward": plain(value), "key": key})


def metric_body(decision: ServiceDecision | str, name: str, value: float) -> bytes | None:
    """Return the body that has a value of a metric of a decision; None if the decision is a fallback."""
    if isinstance(decision, ServiceDecision):
        if decision.fallback:
            return None
        decision = decision.event_id
    return msgspec.json.encode({"event_id": decision, "metric": name, "value": plain(value)})


def activation(decision: ServiceDecision | str) -> str:
    """Return the path of the request that activates a decision."""
    event_id = decision.event_id if isinstance(decision, ServiceDecision) else decision
    return f"/v1/activate/{quote(event_id, safe='')}"


def decision_in(content: bytes) -> ServiceDecision:
    """Return the decision in an answer of the service."""
    return msgspec.json.decode(content, type=ServiceDecision)


def fallback(
    event_id: str, actions: Mapping[str, Any] | Sequence[Mapping[str, Any]], excluded: Sequence[str]
) -> ServiceDecision:
    """Return the baseline: the first action that is not excluded.

    >>> fallback("e", {"a": {}, "b": {}}, ["a"]).action
    'b'
    """
    named = isinstance(actions, Mapping)
    ids = [str(name) for name in (actions if named else range(len(actions)))]
    index = next(index for index, name in enumerate(ids) if name not in excluded)
    pmf = {name: float(place == index) for place, name in enumerate(ids)}
    return ServiceDecision(event_id, ids[index], index, 1.0, pmf, "", fallback=True)


def headers_of(token: str | None) -> dict[str, str]:
    """Return the headers of all requests."""
    headers = {"Content-Type": "application/json"}
    return headers if token is None else {**headers, "Authorization": f"Bearer {token}"}


def refuse(status: int, content: bytes) -> InputError:
    """Return the error that reports why the service has rejected a request."""
    try:
        message = msgspec.json.decode(content)["error"]["message"]
    except (msgspec.DecodeError, KeyError, TypeError):
        message = content[:200].decode("utf-8", "replace")
    return InputError(f"the service has rejected a request ({status}): {message}")
