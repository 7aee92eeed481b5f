"""Jobs for tests of a cluster, which record the resources that all of them hold."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from onlineauto.cluster import Demand


class Account:
    """Counts the resources that all jobs hold, and their maximum."""

    def __init__(self) -> None:
        self.resources_in_use: dict[object, float] = {}
        self.most = 0.0
        self._lock = threading.Lock()

    def holds(self, job: object, amount: float) -> None:
        with self._lock:
            self.resources_in_use[job] = amount
            self.most = max(self.most, sum(self.resources_in_use.values()))


class Work:
    """Does a unit of work in `seconds` per worker; a removed worker leaves after `lag` seconds."""

    def __init__(
        self,
        account: Account,
        total: float,
        *,
        demand: Demand | None = None,
        seconds: float = 0.02,
        lag: float = 0.0,
        fails_at: float = float("inf"),
        on_resize: Callable[[Work, int, int], None] = lambda *_: None,
    ) -> None:
        self.demand = demand or Demand({"CPU": 1.0})
        self.sizes: list[tuple[int, int]] = []
        self.stopped = 0
        self._account, self._total, self._seconds, self._lag = account, total, seconds, lag
        self._fails_at, self._on_resize = fails_at, on_resize
        self._done, self._since, self._workers = 0.0, time.monotonic(), 0
        self._leaving: list[tuple[float, int]] = []

    @property
    def resources_in_use(self) -> tuple[int, int]:
        now = time.monotonic()
        self._leaving = [(until, count) for until, count in self._leaving if until > now]
        workers = self._workers + sum(count for _, count in self._leaving)
        self._account.holds(self, workers * self.demand.worker["CPU"])
        return workers, 0

    def progress(self) -> tuple[float, float]:
        self._work()
        _ = self.resources_in_use
        if self._done >= self._fails_at:
            raise ValueError("a wheel came off")
        return self._done, self._total

    def resize(self, workers: int, servers: int) -> None:
        self._work()
        self.sizes.append((workers, servers))
        self._on_resize(self, workers, servers)
        if workers < self._workers and self._lag:
            self._leaving.append((time.monotonic() + self._lag, self._workers - workers))
        self._workers = workers
        _ = self.resources_in_use

    def stop(self) -> None:
        self.stopped += 1
        self._workers, self._leaving = 0, []
        _ = self.resources_in_use

    def _work(self) -> None:
        now = time.monotonic()
        self._done = min(self._total, self._done + self._workers * (now - self._since) / self._seconds)
        self._since = now
