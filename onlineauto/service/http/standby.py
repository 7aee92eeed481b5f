"""``wait_for_lease``: answer requests as a standby until this process may serve."""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OnlineautoError
from onlineauto.service.http.endpoint import Endpoint, RequestBatch, RequestGuard, Router
from onlineauto.service.http.http_protocol import Connections, event_loop, serve_until
from onlineauto.service.http.wire import Reply, content_type, problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Collection, Mapping

    from onlineauto.service.http.endpoint import Request
    from onlineauto.service.http.tokens import Tokens
    from onlineauto.service.loop.lease import Lease, Standby

_LOG = logging.getLogger("onlineauto.service")
_POLLS: Final = 16.0
_AGAIN: Final = 1.0


def metrics_of(standby: Standby) -> str:
    """Return the metrics of a standby, in the text format of Prometheus."""
    metrics = (
        ("standby", "gauge", "1 if this process waits for the lease.", 1.0),
        ("standby_lease_age_seconds", "gauge", "Seconds since it saw the lease renewed.", standby.age),
        ("standby_failures_total", "counter", "Failed attempts to read or to take it.", standby.failures),
    )
    return "".join(
        f"# HELP onlineauto_{name} {meaning}\n# TYPE onlineauto_{name} {kind}\nonlineauto_{name} {value}\n"
        for name, kind, meaning, value in metrics
    )


class _UnloggedGuard(RequestGuard):
    """Does not log requests: each probe of the readiness of a standby is answered with 503."""

    def account(self, endpoint: str, status: int, seconds: float, reason: str = "") -> None:
        """Do nothing."""


class StandbyApplication(Router):
    """Reports that the process is a standby, and rejects all other requests with 503."""

    def __init__(self, standby: Standby, tokens: Tokens, hosts: Collection[str]) -> None:
        self._standby = standby

        async def alive(_request: Request) -> Reply:
            return Reply.text(f"ok: a standby; {standby.holder} serves\n")

        async def ready(_request: Request) -> Reply:
            return Reply.text(f"no: a standby; {standby.holder} serves\n", 503)

        async def prometheus(_request: Request) -> Reply:
            return Reply(200, metrics_of(standby).encode(), content_type("text/plain; version=0.0.4"))

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
        """Return the answer to a request that only the holder of the lease can serve."""
        return problem(f"this process is a standby; {self._standby.holder} serves", 503, _AGAIN)


def wait_for_lease(
    standby: Standby,
    opened: socket.socket,
    *,
    check: Callable[[], object],
    tokens: Tokens,
    hosts: Collection[str],
) -> Lease | None:
    """Answer as a standby until the lease is free, and return it; return None after a signal.

    `check` raises an error if this process must not take over.
    """
    app = StandbyApplication(standby, tokens, hosts)

    async def main() -> Lease | None:
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()
        found: list[Lease] = []

        async def poll() -> None:
            failed = ""
            while not found:
                await asyncio.sleep(standby.seconds / _POLLS)
                try:
                    check()
                    found.extend(lease for lease in [standby.poll()] if lease is not None)
                    failed = ""
                except OnlineautoError:
                    raise
                except OSError as error:
                    standby.failures += 1
                    if failed != str(error):
                        failed = str(error)
                        extra = {"event": "standby_failed"}
                        _LOG.error("the lease cannot be read or taken: %s", error, extra=extra)
            ended.set()

        polling = asyncio.create_task(poll())
        polling.add_done_callback(lambda _: ended.set())
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ended.set)) for number in numbers
        ]
        await serve_until(ended, app, opened.dup(), lambda: None, grace=0.0)  # the lease expires meanwhile
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        if polling.done():
            polling.result()  # raises the error that ended it
        polling.cancel()
        return found[0] if found else None

    with asyncio.Runner(loop_factory=event_loop) as runner:
        return runner.run(main())
