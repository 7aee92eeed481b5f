"""Each fault raises its alarm and no other; a day of ordinary traffic raises none."""

from __future__ import annotations

import contextlib
import math
import re
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto.errors import OnlineautoError
from onlineauto.service.http.standby import metrics_of
from onlineauto.service.http.status import COUNTERS, GAUGES, LoopsMetrics, ServiceMetrics, status_of
from onlineauto.service.learning.learner import Published
from onlineauto.service.learning.values import Value
from onlineauto.service.log.log_copier import CopyStatus
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.ranking import RankRequest
from tests.service.promql import Alerts, Samples, samples_of
from tests.service.traffic import BEGIN, CONFIGURATION, TOPICS
from tests.waiting import until

yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.lane("ci")

FILE = Path(__file__).resolve().parents[2] / "examples/service/helm/alerts.yaml"
RULES = [rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]]
BASE = BEGIN - BEGIN % 86400
STEP = 300.0
LIKED = {"tom": "sports", "ann": "music"}
SERVER, RANK_SERVER = (frozenset({("job", "onlineauto"), ("instance", name)}) for name in ("learner", "rank"))


class SimulatedService:
    """A service in simulated time, its users and a Prometheus that scrapes it every five minutes."""

    def __init__(self, folder: Path, now: float = BASE) -> None:
        self.now, self.draw = now, Random(now)
        settings = {"reward_wait": 600.0, "control": 0.1, "guardrails": ["reward"]}
        every = Every(publish=60.0, snapshot=600.0)
        clock = lambda: self.now  # noqa: E731
        self.loop = Loop(folder, CONFIGURATION, settings=settings, every=every, clock=clock, compares=True)
        self.metrics = ServiceMetrics(partial(status_of, self.loop))
        self.alerts = Alerts(RULES)
        self.more: Callable[[], Samples] = dict  # what is scraped beside this service
        self.learns = self.rewards = True
        self.is_down = False
        self.features = {"user", "device"}
        self._due: list[tuple[str, float]] = []

    def request(self, event_id: str, user: str, hour: float) -> RankRequest:
        """Return a request; in the evening, the context has a feature more."""
        context = {"user": {user: 1}, "device": {"phone": int(self.draw.random() < 0.5), "screen": 3}}
        if hour >= 18.0:
            context["time"] = {"evening": 1}
        features = {
            name: msgspec.Raw(msgspec.json.encode(each))
            for name, each in context.items()
            if name in {*self.features, "time"}
        }
        actions = [[{"article": msgspec.Raw(b'{"%b":1}' % topic.encode())}] for topic in TOPICS]
        return RankRequest(event_id, [features], TOPICS, actions)

    def run(self, hours: float) -> set[str]:
        """Simulate hours, and return the alerts that have fired."""
        for _ in range(int(hours * 3600 / STEP)):
            self._step()
        return self.alerts.fired

    def _step(self) -> None:
        end = self.now + STEP
        hour = self.now % 86400 / 3600
        light = 0.5 - 0.5 * math.cos(2 * math.pi * hour / 24)  # 0 at midnight, 1 at noon
        count = round(6 + 40 * light)
        try:
            with self.loop.together():
                if self.rewards:
                    for event_id, value in self._due:
                        self.loop.reward(event_id, value, ignore_completion)
                self._due.clear()
                for _ in range(count):
                    self.now += STEP / (count + 1)
                    self._decide(hour, light)
        except (OnlineautoError, OSError):
            pass  # clients are answered 503
        self.now = end
        self.loop.tick()
        if self.learns:
            try:
                while self.loop.learn():
                    pass
            except ValueError:
                pass
        samples = samples_of(self.metrics.text().decode(), job="onlineauto", instance="learner")
        scraped = {"up": {SERVER: float(not self.is_down)}} | ({} if self.is_down else samples)
        for name, more in self.more().items():
            scraped[name] = scraped.get(name, {}) | more
        self.alerts.evaluate(scraped, self.now)

    def _decide(self, hour: float, light: float) -> None:
        user = "tom" if self.draw.random() < 0.3 + 0.4 * light else "ann"
        event_id = f"{self.draw.getrandbits(60):x}"
        action = self.loop.rank(self.request(event_id, user, hour), ignore_completion).ids[0]
        chance = (0.6 if action == LIKED[user] else 0.35 if action == TOPICS[0] else 0.15) * (
            0.5 + 0.5 * light
        )
        if self.draw.random() < chance:
            self._due.append((event_id, 1.0))


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float, set[str]]:
    """Return the folder of a service after 30 hours of ordinary traffic, the time, and what has fired."""
    folder = tmp_path_factory.mktemp("day") / "loop"
    service = SimulatedService(folder)
    fired = service.run(30.0)
    service.loop.close()
    return folder, service.now, fired


@pytest.fixture
def service(day: tuple[Path, float, set[str]], tmp_path: Path) -> Iterator[SimulatedService]:
    """Return that service, which continues in a copy of the folder."""
    folder, now, _ = day
    shutil.copytree(folder, tmp_path / "loop")
    (tmp_path / "loop/lock").unlink()
    service = SimulatedService(tmp_path / "loop", now)
    yield service
    service.loop.close()


def test_a_day_and_a_night_of_ordinary_traffic_raise_no_alarm(day: tuple[Path, float, set[str]]) -> None:
    assert day[2] == set()


def test_a_service_that_continues_raises_no_alarm(service: SimulatedService) -> None:
    assert service.run(6.0) == set()
    assert status_of(service.loop).warnings == []


def deciding(service: SimulatedService, pmf: Callable[[bytes], list[float]]) -> None:
    """Let a function of the request decide in place of the model."""
    loop = service.loop
    predictor: Any = SimpleNamespace(
        predict=lambda text: np.array(pmf(text)),
        predict_texts=lambda texts: [np.array(pmf(text)) for text in texts],
    )
    loop.learner.publish = lambda: Published(predictor, loop.learner.name, loop.learner.join.now)  # type: ignore[method-assign]
    loop.published = loop.learner.publish()


def failing(*_: object) -> Any:
    raise ValueError("a fault")


def copy_behind(service: SimulatedService) -> None:
    behind = CopyStatus("/disk2", 0, 1000, 120.0, 3, "no space")
    service.loop.copies = [SimpleNamespace(status=lambda: behind)]  # type: ignore[list-item]


def scraped_standby(age: float) -> Samples:
    standby: Any = SimpleNamespace(age=age, failures=0)
    return samples_of(metrics_of(standby), job="onlineauto", instance="standby")


def with_lease(service: SimulatedService, *, age: float | None) -> None:
    service.loop.lease = SimpleNamespace(epoch=3, problem="", check=lambda: None)  # type: ignore[assignment]
    if age is not None:
        service.more = lambda: scraped_standby(age)


def learning_fails(service: SimulatedService) -> None:
    service.loop.learner.step = failing  # type: ignore[method-assign]


def learner_is_slow(service: SimulatedService) -> None:
    service.learns = False


def log_fails(service: SimulatedService) -> None:
    def append(_: object) -> None:
        raise OSError(28, "No space left on device")

    service.loop.log.append = append  # type: ignore[assignment, method-assign]


def loop_fails(service: SimulatedService) -> None:
    text = LoopsMetrics([], n_open=0, n_failed=1).text().decode()
    service.more = lambda: samples_of(text, job="onlineauto", instance="learner")


def each_scrape_follows(service: SimulatedService, *requests: tuple[str, int]) -> None:
    """Count requests, by endpoint and status, before each scrape of the service."""

    def count() -> Samples:
        for endpoint, status in requests:
            service.metrics.request(endpoint, status, 0.01)
        return {}

    service.more = count


def requests_fail(service: SimulatedService) -> None:
    each_scrape_follows(service, ("rank", 500), ("rank", 429))


def clients_send_no_rewards_in_time(service: SimulatedService) -> None:
    service.more = lambda: {
        "onlineauto_pending": {RANK_SERVER: 900.0},
        "onlineauto_max_pending": {RANK_SERVER: 1000.0},
    }


def rank_server_is_cut_off(service: SimulatedService) -> None:
    service.more = lambda: {
        "onlineauto_learning": {RANK_SERVER: 0.0},
        "onlineauto_behind_bytes": {RANK_SERVER: 5000.0},
    }


def rewards_stop(service: SimulatedService) -> None:
    service.rewards = False


def one_action_for_all(service: SimulatedService) -> None:
    deciding(service, lambda _: [0.01, 0.98, 0.01])


def more_explored_than_used(service: SimulatedService) -> None:
    deciding(service, lambda text: [0.31, 0.38, 0.31] if b'"tom"' in text else [0.31, 0.31, 0.38])


def device_is_renamed(service: SimulatedService) -> None:
    service.features = {"user"}


def the_model_is_wrong(service: SimulatedService) -> None:
    def pmf(text: bytes) -> list[float]:
        wrong = 2 if b'"tom"' in text else 1
        return [0.02 + 0.94 * (number == wrong) for number in range(3)]

    service.loop.use_model(service.loop.keep_model(), ignore_completion)
    service.loop.learn()
    deciding(service, pmf)


def disk_fills(service: SimulatedService) -> None:
    service.loop.__class__ = type("FullLoop", (Loop,), {"disk_free_share": 0.05})


def learner_is_late(service: SimulatedService) -> None:
    service.now += 400.0


def lift_is_negative(service: SimulatedService) -> None:
    report = service.loop.experiment
    lift = msgspec.structs.replace(report.lift, high=-0.1)
    service.loop.experiment = msgspec.structs.replace(report, lift=lift)


def baseline_is_better(service: SimulatedService) -> None:
    values = [Value("live", 9, 0.1, 0.0, 0.2, 9.0), Value("baseline", 9, 0.4, 0.3, 0.5, 9.0)]
    service.loop.board = msgspec.structs.replace(service.loop.board, values=values)


def guardrail_breaks(service: SimulatedService) -> None:
    report = service.loop.experiment
    alarm: Any = SimpleNamespace(epoch=report.epoch)
    service.loop.experiment = msgspec.structs.replace(report, alarms=[alarm])


def model_is_not_saved(service: SimulatedService) -> None:
    service.loop.unsaved = OSError("no space")


def disk_has_no_room_for_a_snapshot(service: SimulatedService) -> None:
    def snapshot() -> None:
        raise OSError(28, "No space left on device")

    service.loop.learner.snapshot = snapshot  # type: ignore[method-assign]


def learning_has_failed(service: SimulatedService) -> None:
    service.loop.failed = ValueError("a fault")


def service_is_down(service: SimulatedService) -> None:
    service.is_down = True


def records_are_damaged(service: SimulatedService) -> None:
    service.loop.learner.skipped += 1


FAULTS: dict[str, tuple[Callable[[SimulatedService], object], float]] = {
    "OnlineautoDown": (service_is_down, 0.5),
    "OnlineautoNotLearning": (learning_fails, 0.5),
    "OnlineautoLearnerBehind": (learner_is_slow, 0.5),
    "OnlineautoRecordsSkipped": (records_are_damaged, 0.5),
    "OnlineautoLogNotWritable": (log_fails, 0.5),
    "OnlineautoModelNotSaved": (disk_has_no_room_for_a_snapshot, 0.5),
    "OnlineautoRequestsFail": (requests_fail, 1.5),
    "OnlineautoPendingNearlyFull": (clients_send_no_rewards_in_time, 0.5),
    "OnlineautoRankServerAlone": (rank_server_is_cut_off, 0.5),
    "OnlineautoLoopFailed": (loop_fails, 0.5),
    "OnlineautoRewardsStopped": (rewards_stop, 6.0),
    "OnlineautoChoicesCollapsed": (one_action_for_all, 8.0),
    "OnlineautoChoicesAtFloor": (more_explored_than_used, 8.0),
    "OnlineautoFeatureVanished": (device_is_renamed, 3.0),
    "OnlineautoWorseThanBaseline": (the_model_is_wrong, 24.0),
    "OnlineautoDiskNearlyFull": (disk_fills, 0.5),
    "OnlineautoCopyBehind": (copy_behind, 0.5),
    "OnlineautoNoStandby": (lambda service: with_lease(service, age=None), 0.5),
    "OnlineautoStandbyCannotTakeOver": (lambda service: with_lease(service, age=90.0), 0.5),
}


@pytest.mark.parametrize(
    ("inject", "warning"),
    [
        (log_fails, "the log cannot be written: [Errno 28] No space left on device"),
        (disk_fills, "5 % of the disk of "),
        (copy_behind, "the log is not copied to /disk2: no space"),
        (lambda service: service.loop.checks.append(lambda: "a check"), "a check"),
        (learning_has_failed, "learning has stopped: a fault"),
        (model_is_not_saved, "the model cannot be saved: no space"),
        (learner_is_late, "the learner is 400 seconds behind the log."),
        (lift_is_negative, "the model earns less than the control arm."),
        (baseline_is_better, "the service earns less than its baseline."),
        (guardrail_breaks, "a guardrail is broken: /v1/experiment names it."),
    ],
)
def test_a_warning_says_what_is_wrong(
    service: SimulatedService, inject: Callable[[SimulatedService], object], warning: str
) -> None:
    inject(service)
    with contextlib.suppress(OnlineautoError, OSError):
        service.loop.rank(service.request("e", "tom", 1.0), ignore_completion)
    until(lambda: status_of(service.loop).warnings != [])
    assert [each[: len(warning)] for each in status_of(service.loop).warnings] == [warning]


@pytest.mark.parametrize("alert", FAULTS)
def test_a_fault_raises_its_alarm_and_no_other(service: SimulatedService, alert: str) -> None:
    inject, hours = FAULTS[alert]
    service.run(0.1)
    inject(service)
    assert service.run(hours) == {alert}


def test_probes_of_a_server_that_is_not_ready_raise_no_alarm(service: SimulatedService) -> None:
    each_scrape_follows(service, ("ready", 503), ("alive", 503), ("rank", 200), ("rank", 422))
    assert service.run(1.5) == set()


def test_one_of_several_servers_that_is_down_raises_an_alarm(service: SimulatedService) -> None:
    service.more = lambda: {"up": {RANK_SERVER: 1.0}, "onlineauto_ready": {RANK_SERVER: 1.0}}
    assert service.run(0.5) == set()
    service.more = lambda: {"up": {RANK_SERVER: 0.0}}
    assert service.run(0.5) == {"OnlineautoDown"}


def test_a_learner_that_is_gone_raises_an_alarm_though_another_service_learns(
    service: SimulatedService,
) -> None:
    other = frozenset({("job", "other"), ("instance", "learner")})
    service.more = lambda: {"onlineauto_learnt_total": {other: 1.0}}
    service.run(0.5)
    service.is_down = True
    assert service.run(0.5) == {"OnlineautoDown"}


def test_a_learner_with_a_standby_raises_no_alarm(service: SimulatedService) -> None:
    with_lease(service, age=1.0)
    assert service.run(0.5) == set()


def test_each_alert_has_its_fault_and_asks_for_metrics_that_exist() -> None:
    assert [rule["alert"] for rule in RULES] == list(FAULTS)
    known = {f"onlineauto_{name}_total" for name in COUNTERS} | {f"onlineauto_{name}" for name in GAUGES}
    known |= {
        "onlineauto_reward",
        "onlineauto_lift",
        "onlineauto_guardrail_alarms",
        "onlineauto_copy_lag_seconds",
        "onlineauto_loops_failed",
        "onlineauto_requests_total",
    }
    known |= set(scraped_standby(0.0))
    for rule in RULES:
        assert {*re.findall(r"onlineauto_\w+", rule["expr"])} <= known
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert rule["annotations"]["summary"]
