"""``Client`` and ``AsyncClient``: rank, reward and activate, with retries and a fallback."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import httpx

from onlineauto.service.client.messages import (
    Retry,
    ServiceDecision,
    activation,
    decision_in,
    fallback,
    headers_of,
    metric_body,
    must_retry,
    rank_body,
    refuse,
    reward_body,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType
    from typing import Self


class Client:
    """Client of a service. Threads may share a client.

    A request is sent again if the service does not answer or reports that it may answer later. Each decision
    has an id and each reward a key, so no record counts twice. While the service is away, `rank` returns the
    baseline, which is the first action, and `reward` returns False.

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
        self.retry = retry or Retry()
        self._http = httpx.Client(
            base_url=url, headers=headers_of(token), timeout=timeout, transport=transport
        )

    def __enter__(self) -> Self:
        """Return this client."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
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
        event_id, body = rank_body(
            context, actions, event_id=event_id, excluded=excluded, deferred=deferred, unit=unit
        )
        answer = self._sent("/v1/rank", body)
        return fallback(event_id, actions, excluded) if answer is None else decision_in(answer)

    def reward(self, decision: ServiceDecision | str, value: float, *, key: str = "reward") -> bool:
        """Reward a decision, and return whether the service has the reward. A key counts once per decision.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        body = reward_body(decision, value, key=key)
        return body is not None and self._sent("/v1/reward", body) is not None

    def metric(self, decision: ServiceDecision | str, name: str, value: float) -> bool:
        """Record a value of a guardrail's metric for a decision, and return whether the service has it.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        body = metric_body(decision, name, value)
        return body is not None and self._sent("/v1/metric", body) is not None

    def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, so that it is learnt; return whether the service has the activation.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        return self._sent(activation(decision), b"") is not None

    def _sent(self, path: str, body: bytes) -> bytes | None:
        """Return the answer to a request, or None if the service is away.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        for attempt in range(self.retry.attempts):
            after = None
            try:
                answer = self._http.post(path, content=body)
                if answer.is_success:
                    return answer.content
                if not must_retry(answer.status_code):
                    raise refuse(answer.status_code, answer.content)
                after = answer.headers.get("retry-after")
            except httpx.TransportError:
                pass
            if attempt + 1 < self.retry.attempts:
                time.sleep(self.retry.seconds(attempt, after))
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
        self.retry = retry or Retry()
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers_of(token), timeout=timeout, transport=transport
        )

    async def __aenter__(self) -> Self:
        """Return this client."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connections."""
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
        event_id, body = rank_body(
            context, actions, event_id=event_id, excluded=excluded, deferred=deferred, unit=unit
        )
        answer = await self._sent("/v1/rank", body)
        return fallback(event_id, actions, excluded) if answer is None else decision_in(answer)

    async def reward(self, decision: ServiceDecision | str, value: float, *, key: str = "reward") -> bool:
        """Reward a decision, like `Client.reward`."""
        body = reward_body(decision, value, key=key)
        return body is not None and await self._sent("/v1/reward", body) is not None

    async def metric(self, decision: ServiceDecision | str, name: str, value: float) -> bool:
        """Record a value of a guardrail's metric, like `Client.metric`."""
        body = metric_body(decision, name, value)
        return body is not None and await self._sent("/v1/metric", body) is not None

    async def activate(self, decision: ServiceDecision | str) -> bool:
        """Activate a deferred decision, like `Client.activate`."""
        return await self._sent(activation(decision), b"") is not None

    async def _sent(self, path: str, body: bytes) -> bytes | None:
        """Return the answer to a request, or None if the service is away.

        Raises
        ------
        InputError
            The service has rejected the request.
        """
        for attempt in range(self.retry.attempts):
            after = None
            try:
                answer = await self._http.post(path, content=body)
                if answer.is_success:
                    return answer.content
                if not must_retry(answer.status_code):
                    raise refuse(answer.status_code, answer.content)
                after = answer.headers.get("retry-after")
            except httpx.TransportError:
                pass
            if attempt + 1 < self.retry.attempts:
                await asyncio.sleep(self.retry.seconds(attempt, after))
        return None
