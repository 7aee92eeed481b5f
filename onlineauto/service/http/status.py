"""``Status``: the answer of ``/v1/status``, and which of its fields are metrics of ``/metrics``.

A field says once where its value is: at a path of attributes of the service, where a method is called; a path
that ends with a dot continues with the name of the field. A counter or a gauge is also a metric, with its
meaning. So a new metric is one line.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import msgspec
from msgspec import Meta
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from onlineauto.service.http.http_protocol import Connections
from onlineauto.service.join.join import BYTES_PER_DECISION, JoinSettings
from onlineauto.service.learning.experiment import ExperimentReport
from onlineauto.service.learning.segments import SegmentSummary
from onlineauto.service.learning.traffic import VanishedFeature
from onlineauto.service.learning.values import Agreement, Point, Value
from onlineauto.service.log.log_copier import CopyStatus
from onlineauto.service.loop.loop import ChampionChange, LiveConfigSummary
from onlineauto.service.loop.route_status import EndpointStatus, RouteStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client import Metric

    from onlineauto.service.loop.front import Front
    from onlineauto.service.loop.loop import Loop
    from onlineauto.service.loop.rank_server import RankServer


def _at(path: str, *, kind: str = "", meaning: str | None = None) -> Meta:
    """Declare the path of a field's value."""
    return Meta(description=meaning, extra={"path": path, "kind": kind, "meaning": meaning})


def _counter(meaning: str, path: str = "join.counts.") -> Meta:
    """Declare a counter of ``/metrics``."""
    return _at(path, kind="counter", meaning=meaning)


def _gauge(meaning: str, path: str = "") -> Meta:
    """Declare a gauge of ``/metrics``."""
    return _at(path, kind="gauge", meaning=meaning)


class FrontStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a service and a rank server have."""

    ranked: Annotated[int, _counter("Decisions.")]
    rewarded: Annotated[int, _counter("Rewards.")]
    model: str
    ready: Annotated[bool, _gauge("1 if the log can be written.", "writable")]
    learning: Annotated[bool, _gauge("1 if learning continues.")]
    error: str
    settings: Annotated[JoinSettings, _at("join.settings")]
    pending: Annotated[
        int,
        _gauge(
            "Decisions that have not ended: they wait for their reward, or until they are learnt.",
            "join.waiting",
        ),
    ]
    max_pending: Annotated[int, _gauge("Maximum number of decisions that have not ended.", "limits.pending")]
    finished: Annotated[int, _gauge("Finished decisions that are remembered.", "join.finished")]
    max_finished: Annotated[
        int, _gauge("Maximum number of finished decisions that are remembered.", "join.settings.max_finished")
    ]
    early: Annotated[int, _gauge("Ids whose rewards wait for a decision.", "join.early")]
    log_bytes: Annotated[int, _counter("Bytes of the log.", "log.end")]
    log_groups: Annotated[int, _counter("Flushes of the log.", "groups")]
    queued: Annotated[int, _gauge("Records that wait to be written.", "queued")]
    price: Annotated[
        float, _gauge("Price of a unit of cost, in rewards, by which the budget is held.", "join.pacing.")
    ]
    mean_cost: Annotated[float, _gauge("Mean cost of a decision.", "join.pacing.")]
    recent_cost: Annotated[
        float, _gauge("Mean cost of a decision, in which the latest 200 count most.", "join.pacing.")
    ]
    costed: Annotated[int, _counter("Decisions whose costs are known.", "join.pacing.")]
    over_budget: Annotated[
        int, _counter("Decisions whose cheapest action costs more than the budget.", "join.pacing.")
    ]
    unmatched_costs: Annotated[
        int, _counter("Costs that were reported for no known decision.", "join.pacing.unmatched")
    ]
    clipped_costs: Annotated[
        int, _counter("Costs far beyond all others, of which the price took less.", "join.pacing.clipped")
    ]
    disk_free_share: Annotated[float, _gauge("Free share of the disk of the folder.", "disk_free_share")]
    time: Annotated[float, _at("clock")]


class Status(FrontStatus, frozen=True, kw_only=True):
    """The state of a service.

    Attributes
    ----------
    ranked, rewarded, learnt : int
        Decisions, rewards, and decisions that were learnt, since the log began.
    champion : LiveConfig
        The config that decides.
    champion_changes : int
        Number of champions before it.
    lag_seconds : float
        Age of the oldest record that the learner has not taken; 0 if there is none.
    ready : bool
        The log can be written.
    learning : bool
        Learning continues; if not, `error` has the reason, and the model that was published last decides.
    pending, max_pending : int
        The number of decisions that have not ended, and its maximum. They are in no value, interval or arm.
    finished, max_finished : int
        The number of finished decisions that are remembered, and its maximum.
    table_bytes : int
        Approximate memory of all these decisions, in the tables of the front and of the learner.
    held_out : int
        The number of decisions of the control arm that have ended; they are not learnt.
    experiment : ExperimentReport
        The lift over the control arm, the guardrails, and the alarms.
    skipped, skipped_latest : int and list of str
        The number of records of the log that could not be applied, and a description of the latest.
    segments : list of SegmentSummary
        What the model prefers for whom.
    price, mean_cost, recent_cost, costed, over_budget, clipped_costs : float and int
        The price of a unit of cost, the mean cost of a decision, in all and of the latest 200, the number of
        decisions in it, of those whose cheapest action costs more than the budget, and of costs far beyond
        all others.
    action_costs : mapping of str to float
        The mean reported cost of each action.
    epoch : int
        The epoch of the lease with --standby; 0 without.
    choice_entropy, floor_share : float
        Of the latest decisions: the entropy of the actions with the highest probability, from 0 to 1, and the
        share whose action had the lowest probability.
    reward_share, reward_share_long_run : float
        The share of the latest 500 and 50,000 decisions that got a reward.
    vanished : list of VanishedFeature
        Namespaces and features of the context that were in the decisions of each hour, and are no longer.
    warnings : list of str
        What is unusual in the latest decisions, with a likely cause; and why no model answers a router.
    copies : list of CopyStatus
        The copies of the log in another folder or in a topic, and how far they are behind.
    route : RouteStatus
        The language models, of a router.
    """

    learnt: Annotated[int, _counter("Decisions that were learnt.", "board.")]
    champion: LiveConfigSummary
    champion_changes: Annotated[int, _counter("Changes of the champion.", "board.")]
    lag_seconds: Annotated[float, _gauge("Age of the oldest record that was not learnt.", "lag_seconds")]
    table_bytes: int
    joined: Annotated[int, _counter("Decisions that ended with a reward.")]
    defaulted: Annotated[int, _counter("Decisions that ended without a reward.")]
    inactive: Annotated[int, _counter("Decisions that were never activated.")]
    late: Annotated[
        int,
        _counter("Rewards that arrived after the end of their decision, or after the first one that counts."),
    ]
    duplicate: Annotated[int, _counter("Rewards that repeated an earlier one.")]
    dangling: Annotated[
        int, _counter("Rewards whose decision never arrived, or that could not wait within the limits.")
    ]
    repeated: Annotated[int, _counter("Decisions whose id was in use.")]
    forgotten: Annotated[int, _counter("Finished decisions that were forgotten before their wait was over.")]
    clipped: Annotated[
        int, _counter("Rewards beyond the range that is declared or learnt, and sums beyond a declared one.")
    ]
    clock_jumps: Annotated[int, _counter("Records whose time is implausibly far from the one before.")]
    faulty: Annotated[int, _counter("Decisions that could not be learnt.", "learner.")]
    too_wide: Annotated[
        int, _counter("Decisions that were learnt without their widest interactions.", "board.")
    ]
    outliers: Annotated[
        int,
        _counter(
            "Decisions that were not learnt, since a number is far beyond all others of its kind.",
            "board.",
        ),
    ]
    skipped: Annotated[int, _counter("Records that could not be applied.", "learner.")]
    skipped_latest: list[str]
    mean_wait: Annotated[float, _gauge("Mean seconds that a learnt decision has waited.", "board.waited")]
    live_configs: Annotated[list[LiveConfigSummary], _at("board.live_configs")]
    changes: Annotated[list[ChampionChange], _at("board.changes")]
    values: list[Value]
    agreement: Annotated[Agreement, _at("board.agreement")]
    points: list[Point]
    segments: Annotated[list[SegmentSummary], _at("board.segments")]
    epoch: Annotated[int, _gauge("Epoch of the lease with --standby; 0 without.", "epoch")]
    choice_entropy: Annotated[
        float,
        _gauge(
            "Entropy of the preferred actions: 0 if it is one for all, 1 if all are as frequent.",
            "traffic.",
        ),
    ]
    floor_share: Annotated[
        float, _gauge("Share of the latest decisions whose action had the lowest probability.", "traffic.")
    ]
    features_vanished: Annotated[
        int,
        _gauge("Namespaces and features that were in each hour, and are no longer.", "traffic.n_vanished"),
    ]
    reward_share: Annotated[float, _gauge("Share of the latest decisions that got a reward.", "traffic.")]
    reward_share_long_run: Annotated[
        float, _gauge("Share of the latest 50,000 decisions that got a reward.", "traffic.")
    ]
    vanished: Annotated[list[VanishedFeature], _at("traffic.")]
    warnings: Annotated[list[str], _at("warnings")]
    held_out: Annotated[int, _counter("Decisions of the control arm that have ended.", "learner.")]
    experiment: Annotated[ExperimentReport, _at("experiment")]
    loss_window_seconds: float = 0.0  # An answer is sent only after the disk has its record.
    copies: list[CopyStatus]
    action_costs: dict[str, float]
    route: Annotated[RouteStatus | None, _at("route")] = None


class RankServerStatus(FrontStatus, frozen=True, kw_only=True):
    """The state of a rank server: it is learning if its last request to the learner succeeded."""

    behind_bytes: Annotated[
        int, _gauge("Of a rank server: bytes of its log that the learner does not have.", "behind")
    ]


def status_of(loop: Loop, *, points: bool = False) -> Status:
    """Return the state of a service, with its curve if `points`."""
    board = loop.board
    return Status(
        **_values(Status, loop),
        champion=board.live_configs[0],
        learning=loop.failed is None,
        error=loop.trouble,
        model=board.model,
        table_bytes=2 * BYTES_PER_DECISION * (loop.join.waiting + loop.join.finished),
        skipped_latest=list(map(str, loop.learner.latest)),
        values=[value for value in board.values if value.reward is not None],
        points=board.points if points else [],
        copies=[copier.status() for copier in loop.copies],
        action_costs={name: mean.mean for name, mean in list(loop.join.pacing.by_action.items())},
    )


def rank_server_status(rank_server: RankServer) -> RankServerStatus:
    """Return the state of a rank server."""
    failed = rank_server.failed
    return RankServerStatus(
        **_values(RankServerStatus, rank_server),
        model=rank_server.published.name,
        learning=failed is None,
        error=rank_server.trouble or ("" if failed is None else str(failed)),
    )


def metrics_of(kind: Literal["counter", "gauge"]) -> dict[str, str]:
    """Return the meanings of the metrics of a kind, by the name of their field."""
    fields = _fields_of(Status) | _fields_of(RankServerStatus)
    return {name: field["meaning"] for name, field in fields.items() if field["kind"] == kind}


def _values(status: type[FrontStatus], front: Front) -> dict[str, Any]:
    """Return the values of the fields that declare a path."""
    fields = _fields_of(status).items()
    paths = {
        name: field["path"] + name * field["path"].endswith(".") for name, field in fields if field["path"]
    }
    values = {name: attrgetter(path)(front) for name, path in paths.items()}
    return {name: value() if callable(value) else value for name, value in values.items()}


def _fields_of(status: type[FrontStatus]) -> dict[str, dict[str, str]]:
    """Return the declarations of the fields of a status that have one."""
    declared = {field.name: get_args(field.type) for field in msgspec.structs.fields(status)}
    return {
        name: arguments[1].extra or {}
        for name, arguments in declared.items()
        if len(arguments) > 1 and isinstance(arguments[1], Meta)
    }


COUNTERS: Final = metrics_of("counter")
"""Meanings of the counters, by field of the status; their names are ``onlineauto_FIELD_total``."""
GAUGES: Final = metrics_of("gauge")
"""Meanings of the gauges, by field of the status; their names are ``onlineauto_FIELD``."""
MOST_LABELS: Final = 100
"""Maximum number of loops that have labels of their own in ``/metrics``, besides the default."""
_LOWEST: Final = ("ready", "learning")
_HIGHEST: Final = ("lag_seconds", "mean_wait")
_BUCKETS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0)
_BOUNDS: Final = (*(str(bound) for bound in _BUCKETS), "+Inf")


class _Seconds:
    """Counts the requests of an endpoint by duration, and sums their seconds."""

    def __init__(self) -> None:
        self.counts, self.total = [0] * len(_BOUNDS), 0.0


class ServiceMetrics(Collector):
    """The metrics of one service."""

    def __init__(self, status: Callable[[], Status | RankServerStatus | None]) -> None:
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
        if status is None:  # a loop that was not opened yet
            return
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
            yield from () if status.route is None else _route(status.route)

    def _experiment(self, status: Status) -> Iterator[Metric]:
        report = status.experiment
        lift = GaugeMetricFamily(
            "onlineauto_lift", "Reward of the treatment less that of the control arm.", labels=["bound"]
        )
        yield _filled(lift, ((getattr(report.lift, each), each) for each in ("difference", "low", "high")))
        alarms = sum(alarm.epoch == report.epoch for alarm in report.alarms)
        yield GaugeMetricFamily(
            "onlineauto_guardrail_alarms", "Broken guardrails since the latest change.", value=alarms
        )
        matches = float(report.sample_ratio.matches)
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


class LoopsMetrics(Collector):
    """The metrics of many loops, with the name of the loop as a label.

    The first `MOST_LABELS` loops have labels of their own. The others are summed as ``other``: counts are
    added, `_LOWEST` is the lowest and `_HIGHEST` the highest of all.
    """

    def __init__(self, loops: Sequence[tuple[str, ServiceMetrics]], n_open: int, n_failed: int = 0) -> None:
        self._loops, self._n_open, self._registry = loops, n_open, CollectorRegistry()
        self._n_failed = n_failed
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield each metric with the samples of all loops."""
        yield GaugeMetricFamily("onlineauto_loops", "Loops, besides the default.", value=len(self._loops) - 1)
        yield GaugeMetricFamily(
            "onlineauto_open_loops", "Loops whose models are in memory, besides the default.", self._n_open
        )
        yield GaugeMetricFamily(
            "onlineauto_loops_failed", "Loops that cannot be opened, learn or save.", self._n_failed
        )
        families: dict[str, Metric] = {}
        others: dict[str, dict[tuple[str, tuple[tuple[str, str], ...]], float]] = {}
        for number, (name, metrics) in enumerate(self._loops):
            for family in metrics.collect():
                samples, family.samples = family.samples, []
                if number and family.name.startswith("onlineauto_connections"):
                    continue  # these are of the service
                known = families.setdefault(family.name, family)
                if family.name.startswith("onlineauto_connections"):
                    known.samples = samples
                elif number <= MOST_LABELS:
                    known.samples += [each._replace(labels={**each.labels, "loop": name}) for each in samples]
                elif _is_combined(family.name):
                    _combine(others.setdefault(family.name, {}), samples)
        for name, combined in others.items():
            families[name].samples += [
                Sample(sample, {**dict(labels), "loop": "other"}, value)
                for (sample, labels), value in combined.items()
            ]
        yield from families.values()


def _is_combined(name: str) -> bool:
    """Return whether a metric of many loops can be one number."""
    field = name.removeprefix("onlineauto_")
    return field in COUNTERS or field in GAUGES or field in ("requests", "request_seconds")


def _combine(
    combined: dict[tuple[str, tuple[tuple[str, str], ...]], float], samples: Iterable[Sample]
) -> None:
    """Add the samples of a loop to those of other loops."""
    for each in samples:
        key, field = (each.name, tuple(each.labels.items())), each.name.removeprefix("onlineauto_")
        if key not in combined:
            combined[key] = each.value
        elif field in _LOWEST:
            combined[key] = min(combined[key], each.value)
        elif field in _HIGHEST:
            combined[key] = max(combined[key], each.value)
        else:
            combined[key] += each.value


def _copies(status: Status) -> Iterator[Metric]:
    for family, name, meaning in (
        (GaugeMetricFamily, "behind_bytes", "Bytes of the log that a copy does not have."),
        (GaugeMetricFamily, "lag_seconds", "Age of the oldest record that a copy does not have."),
        (CounterMetricFamily, "failures", "Failed attempts to copy the log."),
    ):
        metric = family(f"onlineauto_copy_{name}", meaning, labels=["target"])
        yield _filled(metric, ((getattr(copy, name), copy.target) for copy in status.copies))


def _route(route: RouteStatus) -> Iterator[Metric]:
    """Yield the metrics of the models of a router."""
    for name, meaning in _meanings(RouteStatus):
        yield CounterMetricFamily(f"onlineauto_route_{name}", meaning, value=getattr(route, name))
    for name, meaning in _meanings(EndpointStatus):
        metric = CounterMetricFamily(f"onlineauto_route_{name}", meaning, labels=["model"])
        yield _filled(metric, ((getattr(model, name), model.name) for model in route.models))
    down = GaugeMetricFamily("onlineauto_route_down", "1 if a model is not picked.", labels=["model"])
    yield _filled(down, ((float(model.down), model.name) for model in route.models))


def _meanings(status: type[RouteStatus | EndpointStatus]) -> list[tuple[str, str]]:
    """Return the fields that are counters, with their meanings."""
    fields = [(field.name, get_args(field.type)[-1:]) for field in msgspec.structs.fields(status)]
    return [(name, str(last.description)) for name, ends in fields for last in ends if isinstance(last, Meta)]


def _filled(
    metric: CounterMetricFamily | GaugeMetricFamily, rows: Iterable[tuple[float | None, *tuple[str, ...]]]
) -> Metric:
    """Add rows of a number and its labels to a metric, except those without a number."""
    for number, *labels in rows:
        if number is not None:
            metric.add_metric(labels, number)
    return metric
