"""``Client`` and ``AsyncClient``: rank, reward and activate, with retries and a fallback."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from onlineauto.service.client.messages import (
    Retry,
    ServiceAddress,
    ServiceDecision,
    activation,
    fallback,
    id_of,
    metric_body,
    rank_body,
    read_decision,
    read_recorded,
    result_of,
    reward_body,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from onlineauto.service.client.messages import Result


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
        found = self._sent("/v1/rank", body, partial(read_decision, event_id=event_id, ids=ids))
        return found or fallback(event_id, ids, excluded)

    def reward(self, decision: ServiceDecision | str, value: float, *, key: str = "reward") -> bool:
        """Reward a decision, and return whether the service has the reward. A key counts once per decision.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        body = reward_body(decision, value, key=key)
        return body is not None and bool(self._sent("/v1/reward", body, read_recorded))

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
        body = metric_body(decision, name, value, key=key)
        return body is not None and bool(self._sent("/v1/metric", body, read_recorded))

    def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, so that it is learnt; return whether the service has the activation.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        event_id = id_of(decision)
        return event_id is not None and bool(self._sent(activation(event_id), b"", read_recorded))

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
        found = await self._sent("/v1/rank", body, partial(read_decision, event_id=event_id, ids=ids))
        return found or fallback(event_id, ids, excluded)

    async def reward(self, decision: ServiceDecision | str, value: float, *, key: str = "reward") -> bool:
        """Reward a decision, like `Client.reward`."""
        body = reward_body(decision, value, key=key)
        return body is not None and bool(await self._sent("/v1/reward", body, read_recorded))

    async def metric(
        self, decision: ServiceDecision | str, name: str, value: float, *, key: str | None = None
    ) -> bool:
        """Record a value of a guardrail's metric, like `Client.metric`."""
        body = metric_body(decision, name, value, key=key)
        return body is not None and bool(await self._sent("/v1/metric", body, read_recorded))

    async def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, like `Client.activate`."""
        event_id = id_of(decision)
        return event_id is not None and bool(await self._sent(activation(event_id), b"", read_recorded))

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
