"""``Client`` and ``AsyncClient``: rank, reward and activate, with retries and a fallback."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass

import httpx
import msgspec

from onlineauto.errors import InputError, short_repr
from onlineauto.formats.mappings.values import plain, plain_tree
from onlineauto.service.options import RECORDED_BY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType
    from typing import Self

_LOG: Final = logging.getLogger("onlineauto.service")
_UNREADABLE: Final = (ValueError, LookupError, RecursionError, msgspec.MsgspecError)
Result = TypeVar("Result")


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
        if retry_after is not None and retry_after.isascii() and retry_after.isdigit():
            return min(float(retry_after), self.longest)
        return min(self.wait * 2.0**attempt, self.longest)


class ServiceAddress:
    """The address of a service, with the headers of its requests; logs when it goes away or is back."""

    def __init__(self, url: str, token: str | None) -> None:
        self.headers, self._is_away = dict[str, str](), False
        try:
            parsed = httpx.URL(url)
            is_valid = parsed.scheme in ("http", "https") and " " not in url and bool(parsed.host)
            is_valid = is_valid and 0 < (parsed.port or 80) < 65536
        except (httpx.InvalidURL, TypeError):
            is_valid = False
        if not is_valid:
            raise InputError(f"{url!r} is not the address of a service: give http://HOST:PORT")
        self._url = parsed.copy_with(userinfo=b"")  # a log must not have a password
        if token is not None:
            if not token.isascii() or not token.isprintable() or " " in token:
                raise InputError("the token has a space, a line end or another character that no token has")
            self.headers["Authorization"] = f"Bearer {token}"

    def report(self, reason: str) -> None:
        """Report why a request had no answer; "" if it had one."""
        if bool(reason) != self._is_away:
            self._is_away = bool(reason)
            message = "no answer of the service at %s%s" if reason else "the service at %s answers again%s"
            _LOG.warning(message, self._url, reason and f"{self.proxy()}: {reason}")

    def proxy(self) -> str:
        """Return a clause that names the variable of a proxy, if the environment has one for the address."""
        proxies = getproxies()
        name = next((name for name in (self._url.scheme, "all") if proxies.get(name)), "")
        if not name or proxy_bypass(self._url.host):
            return ""
        return f" (asked through the proxy of {name.upper()}_PROXY; NO_PROXY names hosts that need none)"


def result_of(
    answer: httpx.Response | str, read: Callable[[httpx.Response], Result]
) -> tuple[Result | None, str, str | None]:
    """Return what `read` finds in an answer; or None, the reason and the header ``Retry-After``.

    Without an answer, `answer` is the reason. A request that would be rejected again is an `InputError`.
    """
    if isinstance(answer, str):
        return None, answer, None
    status, after = answer.status_code, answer.headers.get("retry-after")
    try:
        return read(answer), "", None
    except _UNREADABLE as error:
        message = message_in(answer)
        if message and 400 <= status < 500 and status != 408 and after is None:
            raise InputError(f"the service has rejected a request ({status}): {message}") from None
        return None, f"status {status}: {message or error}", after


def rank_body(
    context: Mapping[str, Any],
    actions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    event_id: str | None,
    excluded: Sequence[str],
    deferred: bool,
    unit: str = "",
) -> tuple[str, list[str], bytes]:
    """Return the id of a decision, the ids of its actions and its body, which may be sent again."""
    event_id = event_id or secrets.token_hex(16)
    named = plain_tree(actions, "actions")
    body: dict[str, Any] = {
        "event_id": event_id,
        "context": plain_tree(context, "context"),
        "actions": named,
        "excluded": list(excluded),
    }
    ids = list(named) if isinstance(named, Mapping) else [str(index) for index in range(len(named))]
    if isinstance(excluded, str) or any(action not in ids for action in excluded):
        raise InputError(f"excluded is {short_repr(excluded)}: give a list of ids of the actions")
    if deferred:
        body["deferred"] = True
    if unit:
        body["unit"] = unit
    return event_id, ids, _encoded(body)


def _encoded(body: object) -> bytes:
    """Return a body as JSON; reject text that is not Unicode."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise InputError(
            f"{short_repr(error.object)} is not Unicode: it has half of a surrogate pair"
        ) from None


Record: TypeAlias = "tuple[str, bytes] | None"
"""The path and the body of a request about a decision; None for a fallback, which no service knows."""


def reward_record(
    decision: ServiceDecision | str, value: float | None, *, key: str | None, cost: float | None
) -> Record:
    """Return the request that rewards a decision, reports its cost, or both."""
    key = secrets.token_hex(16) if key is None else key
    members = {"reward": value, "cost": cost}
    given = {name: plain(member) for name, member in members.items() if member is not None}
    return _about(decision, "/v1/reward", {**given, "key": key})


def metric_record(decision: ServiceDecision | str, name: str, value: float, *, key: str | None) -> Record:
    """Return the request that has a value of a metric of a decision."""
    key = secrets.token_hex(16) if key is None else key
    return _about(decision, "/v1/metric", {"metric": name, "value": plain(value), "key": key})


def activation_record(decision: ServiceDecision | str) -> Record:
    """Return the request that activates a decision."""
    event_id = _id_of(decision)
    if event_id is None:
        return None
    _encoded(event_id)  # a path could not have it either
    return f"/v1/activate/{quote(event_id, safe='')}", b""


def _about(decision: ServiceDecision | str, path: str, members: Mapping[str, Any]) -> Record:
    event_id = _id_of(decision)
    return None if event_id is None else (path, _encoded({"event_id": event_id, **members}))


def _id_of(decision: ServiceDecision | str) -> str | None:
    """Return the id of a decision, or None if it is a fallback."""
    if isinstance(decision, ServiceDecision):
        return None if decision.fallback else decision.event_id
    return decision


def read_decision(answer: httpx.Response, event_id: str, ids: Sequence[str]) -> ServiceDecision:
    """Return the decision in an answer; raise ValueError if it is not that of the service to this request."""
    if answer.status_code != 200 or not is_json(answer):
        raise ValueError("not a decision")
    decision = msgspec.json.decode(answer.content, type=ServiceDecision)
    if (
        (decision.event_id, set(decision.pmf), decision.fallback) != (event_id, set(ids), False)
        or not 0 <= decision.index < len(ids)
        or decision.action != ids[decision.index]
        or not all(0.0 <= value <= 1.0 for value in decision.pmf.values())
        or abs(sum(decision.pmf.values()) - 1.0) > 1e-3
        or decision.probability != decision.pmf[decision.action]
    ):
        raise ValueError("the decision of another request")
    return decision


def read_recorded(answer: httpx.Response) -> bool:
    """Return True for an answer that says that the service has a record; raise ValueError for any other."""
    name, value = RECORDED_BY
    if answer.status_code != 204 or answer.headers.get(name) != value:
        raise ValueError("not the answer of a service")
    return True


def is_json(answer: httpx.Response) -> bool:
    """Return whether an answer says that its body is JSON."""
    kind = answer.headers.get("content-type", "").partition(";")[0]
    return bool(kind.strip().lower() == "application/json")


def message_in(answer: httpx.Response) -> str:
    """Return the message of an error of the service; "" if the answer is not one."""
    try:
        body = msgspec.json.decode(answer.content, type=dict[str, dict[str, str]])
        return body["error"]["message"] if is_json(answer) else ""
    except _UNREADABLE:
        return ""


def fallback(event_id: str, ids: Sequence[str], excluded: Sequence[str]) -> ServiceDecision:
    """Return the baseline: the first action that is not excluded.

    >>> fallback("e", ["a", "b"], ["a"]).action
    'b'
    """
    index = next((index for index, name in enumerate(ids) if name not in excluded), None)
    if index is None:
        raise InputError("there are no actions, or all are excluded: at least one must remain")
    pmf = {name: float(position == index) for position, name in enumerate(ids)}
    return ServiceDecision(event_id, ids[index], index, 1.0, pmf, "", fallback=True)


class Client:
    """Client of a service. Threads may share a client.

    Only answers of the service count: those with the status, the type and the content that the service sends.
    A request is sent again if there is no such answer, or if the service reports that it may answer later.
    Each decision has an id, and each reward and metric a key, so no record counts twice. While the service is
    away, `rank` returns the baseline, which is the first action, and all other methods return False. The
    logger ``onlineauto.service`` reports why.

    Parameters
    ----------
    url : str
        The service, such as ``http://127.0.0.1:8001``.
    token : str, optional
        The bearer token.
    retry : Retry
        The number of attempts, and the waits between them.
    timeout : float
        Seconds to wait for an answer.
    transport : httpx.BaseTransport, optional
        How requests are sent, for tests.

    Raises
    ------
    InputError
        The address has no ``http://`` or ``https://``, or a header cannot have the token.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retry: Retry | None = None,
        timeout: float = 1.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.retry, self._service = retry or Retry(), ServiceAddress(url, token)
        headers = {"Content-Type": "application/json", **self._service.headers}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)

    def __enter__(self) -> Self:
        """Return this client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections; a ``with`` block does this at its end."""
        self._http.close()

    def rank(
        self,
        context: Mapping[str, Any],
        actions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        event_id: str | None = None,
        excluded: Sequence[str] = (),
        deferred: bool = False,
        unit: str = "",
    ) -> ServiceDecision:
        """Return a decision; the baseline if the service is away.

        Parameters
        ----------
        context : mapping
            Features of the user or situation for which an action is chosen.
        actions : mapping of str to mapping, or sequence of mapping
            Features of each action, the baseline first.
        event_id : str, optional
            The id of the decision; by default a random one.
        excluded : sequence of str
            Ids of actions that must not be chosen.
        deferred : bool
            The decision has to be activated before it is learnt.
        unit : str
            What an experiment assigns to an arm, such as the id of a user; by default the decision.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        event_id, ids, body = rank_body(
            context, actions, event_id=event_id, excluded=excluded, deferred=deferred, unit=unit
        )
        decision = self._sent("/v1/rank", body, partial(read_decision, event_id=event_id, ids=ids))
        return decision or fallback(event_id, ids, excluded)

    def reward(
        self,
        decision: ServiceDecision | str,
        value: float | None = None,
        *,
        key: str | None = None,
        cost: float | None = None,
    ) -> bool:
        """Reward a decision, and return whether the service has the reward.

        A key counts once per decision. By default each call has another key, so each call counts.
        `cost` is what the decision has cost, for a budget; the first cost of a decision counts.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        return self._recorded(reward_record(decision, value, key=key, cost=cost))

    def metric(
        self, decision: ServiceDecision | str, name: str, value: float, *, key: str | None = None
    ) -> bool:
        """Record a value of a guardrail's metric for a decision, and return whether the service has it.

        A key counts once per decision and metric. By default each call has another key, so each call counts.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        return self._recorded(metric_record(decision, name, value, key=key))

    def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, so that it is learnt; return whether the service has the activation.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        return self._recorded(activation_record(decision))

    def _recorded(self, record: Record) -> bool:
        return record is not None and bool(self._sent(*record, read_recorded))

    def _sent(self, path: str, body: bytes, read: Callable[[httpx.Response], Result]) -> Result | None:
        """Return what `read` finds in the answer to a request, or None if the service is away."""
        reason = ""
        for attempt in range(self.retry.attempts):
            answer: httpx.Response | str
            try:
                answer = self._http.post(path, content=body)
            except httpx.RequestError as error:
                answer = f"{type(error).__name__}: {error}"
            found, reason, after = result_of(answer, read)
            if found is not None:
                self._service.report("")
                return found
            if attempt + 1 < self.retry.attempts:
                time.sleep(self.retry.seconds(attempt, after))
        self._service.report(reason)
        return None


class AsyncClient:
    """`Client` for ``async`` code; its parameters and methods are the same."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        retry: Retry | None = None,
        timeout: float = 1.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.retry, self._service = retry or Retry(), ServiceAddress(url, token)
        headers = {"Content-Type": "application/json", **self._service.headers}
        self._http = httpx.AsyncClient(base_url=url, headers=headers, timeout=timeout, transport=transport)

    async def __aenter__(self) -> Self:
        """Return this client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; an ``async with`` block does this at its end."""
        await self._http.aclose()

    async def rank(
        self,
        context: Mapping[str, Any],
        actions: Mapping[str, Any] | Sequence[Mapping[str, Any]],
        *,
        event_id: str | None = None,
        excluded: Sequence[str] = (),
        deferred: bool = False,
        unit: str = "",
    ) -> ServiceDecision:
        """Return a decision, like `Client.rank`."""
        event_id, ids, body = rank_body(
            context, actions, event_id=event_id, excluded=excluded, deferred=deferred, unit=unit
        )
        decision = await self._sent("/v1/rank", body, partial(read_decision, event_id=event_id, ids=ids))
        return decision or fallback(event_id, ids, excluded)

    async def reward(
        self,
        decision: ServiceDecision | str,
        value: float | None = None,
        *,
        key: str | None = None,
        cost: float | None = None,
    ) -> bool:
        """Reward a decision, like `Client.reward`."""
        return await self._recorded(reward_record(decision, value, key=key, cost=cost))

    async def metric(
        self, decision: ServiceDecision | str, name: str, value: float, *, key: str | None = None
    ) -> bool:
        """Record a value of a guardrail's metric, like `Client.metric`."""
        return await self._recorded(metric_record(decision, name, value, key=key))

    async def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, like `Client.activate`."""
        return await self._recorded(activation_record(decision))

    async def _recorded(self, record: Record) -> bool:
        return record is not None and bool(await self._sent(*record, read_recorded))

    async def _sent(self, path: str, body: bytes, read: Callable[[httpx.Response], Result]) -> Result | None:
        """Return what `read` finds in the answer to a request, or None if the service is away."""
        reason = ""
        for attempt in range(self.retry.attempts):
            answer: httpx.Response | str
            try:
                answer = await self._http.post(path, content=body)
            except httpx.RequestError as error:
                answer = f"{type(error).__name__}: {error}"
            found, reason, after = result_of(answer, read)
            if found is not None:
                self._service.report("")
                return found
            if attempt + 1 < self.retry.attempts:
                await asyncio.sleep(self.retry.seconds(attempt, after))
        self._service.report(reason)
        return None
