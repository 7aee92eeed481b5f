"""``ServiceMetrics``: the metrics for Prometheus; all but those of requests are read from the loop."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from onlineauto.service.http.protocol.connections import Connections
from onlineauto.service.http.status import Status, metrics_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from prometheus_client import Metric

    from onlineauto.service.http.status import RankServerStatus

COUNTERS: Final = metrics_of("counter")
"""Meanings of the counters, by field of the status; their names are ``onlineauto_FIELD_total``."""
GAUGES: Final = metrics_of("gauge")
"""Meanings of the gauges, by field of the status; their names are ``onlineauto_FIELD``."""

_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
_BOUNDS: Final = (*(str(each) for each in _BUCKETS), "+Inf")


class _Seconds:
    """Counts the requests of an endpoint by duration, and sums their seconds."""

    def __init__(self) -> None:
        self.counts, self.total = [0] * len(_BOUNDS), 0.0


class ServiceMetrics(Collector):
    """The metrics of one service."""

    def __init__(self, status: Callable[[], Status | RankServerStatus]) -> None:
        self._status, self._registry, self.connections = status, CollectorRegistry(), Connections()
        self._registry.register(self)
        self._requests: dict[tuple[str, int], int] = {}
        self._seconds: dict[str, _Seconds] = {}

    def request(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; only the thread of the event loop calls this."""
        key = endpoint, status
        self._requests[key] = self._requests.get(key, 0) + 1
        counter = self._seconds.get(endpoint)
        if counter is None:
            counter = self._seconds[endpoint] = _Seconds()
        counter.counts[bisect_left(_BUCKETS, seconds)] += 1
        counter.total += seconds

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of the service; a rank server has some of them."""
        yield from self._requests_so_far()
        status = self._status()
        for name, meaning in COUNTERS.items():
            if hasattr(status, name):
                yield CounterMetricFamily(f"onlineauto_{name}", meaning, value=getattr(status, name))
        for name, meaning in GAUGES.items():
            if hasattr(status, name):
                yield GaugeMetricFamily(f"onlineauto_{name}", meaning, value=float(getattr(status, name)))
        yield GaugeMetricFamily("onlineauto_connections", "Open connections.", value=len(self.connections))
        closed = CounterMetricFamily(
            "onlineauto_connections_closed", "Connections that were closed by limits.", labels=["reason"]
        )
        yield _filled(closed, ((count, reason) for reason, count in self.connections.dropped.items()))
        reward = GaugeMetricFamily(
            "onlineauto_reward", "Mean reward of a policy and its interval.", labels=["policy", "bound"]
        )
        values, bounds = (status.values if isinstance(status, Status) else ()), ("reward", "low", "high")
        yield _filled(
            reward, ((getattr(value, bound), value.policy, bound) for value in values for bound in bounds)
        )
        if isinstance(status, Status):
            yield from self._experiment(status)
            yield from _copies(status)

    def _experiment(self, status: Status) -> Iterator[Metric]:
        found = status.experiment
        lift = GaugeMetricFamily(
            "onlineauto_lift", "Reward of the treatment less that of the control arm.", labels=["bound"]
        )
        yield _filled(lift, ((getattr(found.lift, each), each) for each in ("difference", "low", "high")))
        alarms = sum(each.epoch == found.epoch for each in found.alarms)
        yield GaugeMetricFamily(
            "onlineauto_guardrail_alarms", "Broken guardrails since the latest change.", value=alarms
        )
        matches = float(found.sample_ratio.matches)
        yield GaugeMetricFamily(
            "onlineauto_sample_ratio_matches", "1 if the control arm has its share.", value=matches
        )

    def _requests_so_far(self) -> Iterator[Metric]:
        requests = CounterMetricFamily("onlineauto_requests", "Requests.", labels=["endpoint", "status"])
        counts = list(self._requests.items())
        yield _filled(requests, ((count, endpoint, str(code)) for (endpoint, code), count in counts))
        seconds = HistogramMetricFamily(
            "onlineauto_request_seconds", "Seconds from a request to its answer.", labels=["endpoint"]
        )
        for endpoint, counter in list(self._seconds.items()):
            buckets = zip(_BOUNDS, accumulate(counter.counts), strict=True)
            seconds.add_metric([endpoint], [(bound, float(count)) for bound, count in buckets], counter.total)
        yield seconds


def _copies(status: Status) -> Iterator[Metric]:
    for family, name, meaning in (
        (GaugeMetricFamily, "behind_bytes", "Bytes of the log that a copy does not have."),
        (GaugeMetricFamily, "lag_seconds", "Age of the oldest record that a copy does not have."),
        (CounterMetricFamily, "failures", "Failed attempts to copy the log."),
    ):
        metric = family(f"onlineauto_copy_{name}", meaning, labels=["target"])
        yield _filled(metric, ((getattr(copy, name), copy.target) for copy in status.copies))


def _filled(
    metric: CounterMetricFamily | GaugeMetricFamily, rows: Iterable[tuple[float | None, *tuple[str, ...]]]
) -> Metric:
    """Add rows of a number and its labels to a metric, except those without a number."""
    for number, *labels in rows:
        if number is not None:
            metric.add_metric(labels, number)
    return metric
