"""``wait_for_lease``, ``wait_for_learner``: answer requests until a standby or a rank server can serve."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, TypeVar

from onlineauto.errors import OnlineautoError
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, Router
from onlineauto.service.http.http_protocol import Connections, event_loop, serve_until
from onlineauto.service.http.wire import Reply, content_type, problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Coroutine, Mapping

    from onlineauto.service.http.endpoint import Request
    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.loop.lease import Lease, Standby

_LOG = logging.getLogger("onlineauto.service")
_POLLS: Final = 16.0
_AGAIN: Final = 1.0
Result = TypeVar("Result")


def metrics_of(standby: Standby) -> str:
    """Return the metrics of a standby, in the text format of Prometheus."""
    metrics = (
        ("standby", "gauge", "1 if this process waits for the lease.", 1.0),
        ("standby_lease_age_seconds", "gauge", "Seconds since it saw the lease renewed.", standby.age),
        ("standby_failures_total", "counter", "Failed attempts to read or to take it.", standby.failures),
    )
    return "".join(_metric(*metric) for metric in metrics)


def _metric(name: str, kind: str, meaning: str, value: float) -> str:
    """Return a metric in the text format of Prometheus."""
    name = f"onlineauto_{name}"
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n{name} {value}\n"


class _UnloggedGuard(RequestGuard):
    """Does not log requests: each probe of the readiness is answered with 503."""

    def account(self, endpoint: str, status: int, seconds: float, reason: str = "") -> None:
        """Do nothing."""


class WaitingApplication(Router):
    """Reports why the process does not serve yet, and rejects all other requests with 503."""

    def __init__(
        self, state: Callable[[], str], metrics: Callable[[], str], tokens: Tokens, hosts: Collection[str]
    ) -> None:
        self._state = state

        async def alive(_request: Request) -> Reply:
            return Reply.text(f"ok: {state()}\n")

        async def ready(_request: Request) -> Reply:
            return Reply.text(f"no: {state()}\n", 503)

        async def prometheus(_request: Request) -> Reply:
            return Reply(200, metrics().encode(), content_type("text/plain; version=0.0.4"))

        guard = _UnloggedGuard(tokens, lambda *_: None, hosts=hosts)
        handlers = (("/healthz", alive, None), ("/readyz", ready, None), ("/metrics", prometheus, "read"))
        endpoints = {
            path: {
                "GET": Endpoint(
                    guard,
                    handler,
                    name=handler.__name__,
                    scope=scope,
                    body_bytes=0,
                    batch=RequestBatch(nullcontext),
                )
            }
            for path, handler, scope in handlers
        }
        super().__init__(endpoints, Connections(), nullcontext)

    def missing(self, method: str, path: str, methods: Mapping[str, Endpoint]) -> Reply:  # noqa: ARG002
        """Return the answer to a request that this process cannot serve yet."""
        return problem(f"this process is {self._state()}", 503, _AGAIN)


def wait_for_lease(
    standby: Standby,
    opened: socket.socket,
    *,
    check: Callable[[], object],
    tokens: Tokens,
    hosts: Collection[str],
) -> Lease | None:
    """Answer as a standby until the lease is free, and return it; return None after a signal."""

    async def poll() -> Lease:
        failed = ""
        while True:
            await asyncio.sleep(standby.seconds / _POLLS)
            try:
                check()
                lease = standby.poll()
                if lease is not None:
                    return lease
                failed = ""
            except OnlineautoError:
                raise
            except OSError as error:
                standby.failures += 1
                if failed != str(error):
                    failed = str(error)
                    extra = {"event": "standby_failed"}
                    _LOG.error("the lease cannot be read or taken: %s", error, extra=extra)

    app = WaitingApplication(
        lambda: f"a standby; {standby.holder} serves", lambda: metrics_of(standby), tokens, hosts
    )
    return _serve_while(poll(), app, opened)


def wait_for_learner(
    why_away: Callable[[], str],
    failures: int,
    *,
    opened: socket.socket,
    tokens: Tokens,
    hosts: Collection[str],
) -> int | None:
    """Answer as a rank server without a model until the learner answers; return None after a signal.

    `why_away` asks the learner. `failures` is the number of failed attempts, and so is the result.
    """
    reason = "the learner is away"

    async def poll() -> int:
        nonlocal failures, reason
        while reason:
            failures += 1
            await asyncio.sleep(_AGAIN)
            reason = await asyncio.to_thread(why_away)
        return failures

    meaning = "Failed attempts to reach the learner."
    app = WaitingApplication(
        lambda: f"a rank server without a model; {reason}",
        lambda: _metric("learner_failures_total", "counter", meaning, failures),
        tokens,
        hosts,
    )
    return _serve_while(poll(), app, opened)


def _serve_while(poll: Coroutine[Any, Any, Result], app: Router, opened: socket.socket) -> Result | None:
    """Serve an application until `poll` returns, and return its result; return None after a signal."""

    async def main() -> Result | None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        polling = asyncio.create_task(poll)
        polling.add_done_callback(lambda _: ended.set())
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set)) for number in numbers
        ]
        await serve_until(ended, app, opened.dup(), lambda: None, grace=0.0)  # the lease expires meanwhile
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if polling.done():
            return polling.result()  # or raise the error that ended it
        polling.cancel()
        return None

    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(main())
