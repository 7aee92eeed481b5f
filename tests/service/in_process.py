"""A service in a thread of this process, and its client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self

import httpx

from onlineauto.service.http.app import Application
from onlineauto.service.http.endpoint import Router
from onlineauto.service.http.http_protocol import event_loop, serve_until
from onlineauto.service.loop.loop import Loop
from tests.service.serving import held_port
from tests.waiting import PATIENCE, until

RANK = {"context": {"user": {"age": 30}}, "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}}
"""The body of a rank over two actions."""


class AppClient(httpx.Client):
    """A client of an application, which is served until the end of a ``with`` block."""

    def __init__(self, app: Router) -> None:
        self.app = app
        self._opened = held_port()
        super().__init__(
            base_url=f"http://127.0.0.1:{self._opened.getsockname()[1]}", timeout=PATIENCE, trust_env=False
        )
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started = threading.Event()

    def call(self, function: Callable[..., Coroutine[Any, Any, Any]], *given: Any) -> Any:
        """Call a coroutine function in the thread of the service."""
        return asyncio.run_coroutine_threadsafe(function(*given), self._events).result()

    def _run(self) -> None:
        async def main() -> None:
            self._events, self._ended = asyncio.get_running_loop(), asyncio.Event()
            await serve_until(self._ended, self.app, self._opened, self._started.set)

        with asyncio.Runner(loop_factory=event_loop) as runner:
            runner.run(main())

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(PATIENCE)
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if self._thread.is_alive():
            super().__exit__(kind, error, trace)
            self.app.stop()
            self._events.call_soon_threadsafe(self._ended.set)
            self._thread.join()


class InProcessClient(AppClient):
    """A client of the application of a loop."""

    app: Application

    def __init__(self, app: Application, loop: Loop) -> None:
        super().__init__(app)
        self.loop = loop

    def rank(self, event_id: str | None = None, **members: Any) -> httpx.Response:
        """Rank two actions, and return the answer."""
        return self.post("/v1/rank", json=RANK | {"event_id": event_id} | members)

    def reward(self, event_id: str, reward: float = 1.0, **members: Any) -> httpx.Response:
        """Reward a decision, and return the answer."""
        return self.post("/v1/reward", json={"event_id": event_id, "reward": reward} | members)

    def learnt(self, count: int) -> dict[str, Any]:
        """Return the status once a number of decisions are learnt."""
        status: dict[str, Any] = {}

        def is_learnt() -> bool:
            status.update(self.get("/v1/status").json())
            return bool(status["learnt"] >= count)

        until(is_learnt, what=lambda: status)
        return status
