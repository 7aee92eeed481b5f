"""Jobs in this process and in worker processes: failures, deaths and lost leases."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import (
    Callback,
    Categorical,
    Decision,
    Parameter,
    Plateau,
    ResumeFrom,
    Searcher,
    Setting,
    State,
    Stopper,
    Study,
    Suggestion,
    Target,
    Timeout,
)
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.store import Record, open_store
from onlineauto.tune.trial import Job, claim_of
from onlineauto.tune.workers.trainable import AnyTrainable, Config, Report
from tests.tune.postgres import Server
from tests.tune.studies import asked, records_of
from tests.tune.workers import trainables

pytestmark = pytest.mark.lane("ci")


class Heard(Callback):
    """Records all events."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_start(self, job: Job) -> None:
        self.events.append(("start", job.trial))

    def on_report(self, job: Job, step: int, value: float) -> None:
        self.events.append(("report", job.trial, step, value))

    def on_checkpoint(self, job: Job, step: int) -> None:
        self.events.append(("checkpoint", job.trial, step))

    def on_result(self, job: Job, value: float) -> None:
        self.events.append(("result", job.trial, value))

    def on_error(self, job: Job, why: str) -> None:
        self.events.append(("error", job.trial, why))

    def on_lost(self, job: Job, why: str) -> None:
        self.events.append(("lost", job.trial, why))


class Ladder(FifoScheduler):
    """Pauses each trial at some resources, and resumes it before another trial begins."""

    name = "ladder"

    def __init__(self, resources: Sequence[int] = (3,), stop_above: float = math.inf) -> None:
        self.options = {"resources": list(resources), "stop_above": stop_above}
        self._resources, self._stop_above = resources, stop_above

    def begin(self, setting: Setting) -> None:
        super().begin(setting)
        self._paused: list[Suggestion] = []
        self._jobs: dict[int, Suggestion] = {}

    def suggest(self, searcher: Searcher) -> Suggestion | None:
        if self._paused:
            self._running.add(self._paused[0].trial)
            return self._paused.pop(0)
        job = super().suggest(searcher)
        if job is not None:
            job = self._jobs[job.trial] = job._replace(resource=self._resources[0])
        return job

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:
        return Decision.STOP if loss > self._stop_above else Decision.CONTINUE

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:
        changed = super().on_result(trial, resource, loss)
        higher = [level for level in self._resources if level > resource]
        if not higher or loss > self._stop_above:
            return changed
        origin = ResumeFrom(trial, resource)
        self._paused.append(self._jobs[trial]._replace(resource=higher[0], resume_from=origin))
        return {trial: State.PAUSED}

    @property
    def is_done(self) -> bool:
        return super().is_done and not self._paused


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'study.db'}"


def new_study(
    url: str,
    configs: Sequence[Mapping[str, Any]],
    *resources: int,
    stop_above: float = math.inf,
    **options: Any,
) -> Study:
    """Return a study whose trials have these configs, which may have different names."""
    space: dict[str, Parameter] = {"config": Categorical(range(len(configs)))}
    for name in dict.fromkeys(name for config in configs for name in config):
        values = {number: config[name] for number, config in enumerate(configs) if name in config}
        space[name] = Categorical(list(dict.fromkeys(values.values())), when={"config": list(values)})
    scheduler = Ladder(resources or (3,), stop_above)
    study = Study(space, scheduler, storage=url, max_trials=len(configs), **options)
    for number, config in enumerate(configs):
        study.enqueue({"config": number, **config})
    return study


def run(study: Study, what: AnyTrainable, **options: Any) -> list[Record]:
    """Run a study to its end and return the records of its jobs."""
    study.run(what, **options)
    return jobs(study)


def jobs(study: Study) -> list[Record]:
    return [record for record in records_of(study) if "trial" in record]


def ends(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """Return the end of each job: trial, resource and value, or trial and reason."""
    told = [
        (record["trial"], record["resource"], record["value"])
        for record in records
        if record["kind"] == "told"
    ]
    return sorted(told) + sorted(
        (record["trial"], record["why"]) for record in records if record["kind"] == "failed"
    )


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("what", [trainables.Counter, trainables.Reused, trainables.reporting])
def test_paused_trials_continue_from_their_checkpoints(
    url: str, tmp_path: Path, what: AnyTrainable, workers: int
) -> None:
    configs = [{"rate": rate, "notes": str(tmp_path / f"{rate}")} for rate in (1.0, 2.0, 3.0)]
    study = new_study(url, configs, 2, 5)
    records = run(study, what, workers=workers)
    assert ends(records) == [(t, r, (t + 1.0) * r) for t in range(3) for r in (2, 5)]
    steps = [(record["trial"], record["step"]) for record in records if record["kind"] == "reported"]
    assert sorted(steps) == [(t, s) for t in range(3) for s in (1, 3, 4)]
    for config in configs:
        with open(config["notes"]) as file:  # type: ignore[call-overload]  # noqa: PTH123
            assert file.read().split() == ["1", "2", "3", "4", "5"]


def test_a_trainable_with_reset_is_reused(url: str) -> None:
    trainables.Counter.made = 0
    run(new_study(url, 5 * [{"rate": 1.0}]), trainables.Reused)
    assert trainables.Counter.made == 1


def test_a_function_may_return_its_value(url: str) -> None:
    study = new_study(url, [{"rate": 1.5}, {"rate": 2}], 1, 9)
    assert ends(run(study, trainables.plain)) == [(0, 1, 1.5), (0, 9, 1.5), (1, 1, 2.0), (1, 9, 2.0)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_failed_trial_does_not_affect_other_trials(url: str, workers: int) -> None:
    configs: list[dict[str, Any]] = [
        {"rate": 1.0},
        {"rate": 1.0, "fails_at": 2},
        {"rate": "nan"},
        {"rate": "inf"},
    ]
    heard = Heard()
    records = run(new_study(url, configs), trainables.Counter, workers=workers, callbacks=[heard])
    assert ends(records) == [
        (0, 3, 3.0),
        (3, 3, math.inf),
        (1, "ValueError: too large"),
        (2, "its value after step 1 is nan, and no number"),
    ]
    assert ("error", 1, "ValueError: too large") in heard.events


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "its value after step 1 is 'text', and no number"),
        ([1], r"its value after step 1 is [1], and no number"),
        (None, "it ended without a value"),
    ],
)
def test_a_value_is_a_number(url: str, value: object, why: str) -> None:
    study = new_study(url, [{"rate": 1.0}], 1)
    assert ends(run(study, lambda config: value)) == [(0, why)]


def test_a_function_that_ends_early_has_the_last_reported_value(url: str) -> None:
    def early(config: Config, resource: int, report: Report) -> None:
        report(1.0)
        report(0.5)

    study = new_study(url, [{}], 9)
    assert ends(run(study, early)) == [(0, 9, 0.5)]


def test_a_checkpoint_that_cannot_be_saved_fails_the_trial(url: str) -> None:
    def saves(config: Config, resource: int, report: Report) -> None:
        report(1.0, save=object())

    [(_, why)] = ends(run(new_study(url, [{}]), saves))
    assert why.startswith("OptionError: a checkpoint is bytes, or what JSON can write, and not object")


def test_a_scheduler_stops_a_trial(url: str) -> None:
    study = new_study(url, [{"rate": 1.0}, {"rate": 0.1}], 9, stop_above=3)
    assert ends(run(study, trainables.Counter)) == [(0, 4, 4.0), (1, 9, pytest.approx(0.9))]


@pytest.mark.parametrize(
    ("stopper", "told"),
    [
        (Plateau(values=3, tolerance=0.1), [(0, 99, 0.0), (1, 99, 99.0)]),
        (Target(5, mode="max"), [(0, 99, 0.0), (1, 99, 5.0)]),
        (Target(0), [(0, 99, 0.0)]),
        (Timeout(0), []),
    ],
)
def test_stoppers(url: str, stopper: Stopper, told: list[tuple[Any, ...]]) -> None:
    study = new_study(url, [{"rate": 0.0}, {"rate": 1.0}], 99)
    assert ends(run(study, trainables.Counter, stoppers=[stopper])) == told


def test_callbacks_receive_all_events(url: str) -> None:
    heard = Heard()
    run(new_study(url, [{"rate": 1.0}]), trainables.Counter, callbacks=[heard], checkpoint_every=2)
    assert heard.events == [
        ("start", 0),
        ("report", 0, 1, 1.0),
        ("checkpoint", 0, 2),
        ("report", 0, 2, 2.0),
        ("checkpoint", 0, 3),
        ("result", 0, 3.0),
    ]


def test_an_error_of_a_callback_ends_the_run_but_not_the_trial(url: str) -> None:
    class Broken(Callback):
        def on_report(self, job: Job, step: int, value: float) -> None:
            raise ZeroDivisionError

    study = new_study(url, [{"rate": 1.0}])
    with pytest.raises(ZeroDivisionError):
        run(study, trainables.Counter, callbacks=[Broken()])
    assert ends(jobs(study)) == []
    records = run(study, trainables.Counter)
    kinds = [record["kind"] for record in records]
    assert kinds == ["asked", "reported", "released", "asked", "reported", "told"]


def test_an_interrupt_releases_the_job(url: str) -> None:
    def interrupted(config: Config) -> None:
        raise KeyboardInterrupt

    study = new_study(url, [{"rate": 1.0}])
    with pytest.raises(KeyboardInterrupt):
        run(study, interrupted)
    again = Study.load("study", storage=url, scheduler=Ladder())
    assert ends(run(again, trainables.Counter)) == [(0, 3, 3.0)]


def test_a_job_with_a_lost_lease_is_dropped_and_the_worker_continues(url: str) -> None:
    """Another owner claims the first trial before its second report."""
    heard = Heard()

    class Thief(Callback):
        def on_report(self, job: Job, step: int, value: float) -> None:
            if job.trial == 0 and job.attempt == 0:
                store.heartbeat([claim_of(job)], 0)
                time.sleep(0.01)
                claimed = asked(Study.load("study", storage=url, scheduler=Ladder()))
                assert (claimed.trial, claimed.attempt) == (0, 1)
                threading.Timer(0.2, lambda: store.heartbeat([claim_of(claimed)], 0)).start()

    study = new_study(url, 2 * [{"rate": 1.0}])
    store = open_store(url, "study")
    records = run(study, trainables.Counter, callbacks=[heard, Thief()])
    assert next(event for event in heard.events if event[0] == "lost")[1] == 0
    assert ends(records) == [(0, 3, 3.0), (1, 3, 3.0)]
    assert [record["attempt"] for record in records if record["kind"] == "told" and record["trial"] == 0] == [
        2
    ]


def test_leases_are_renewed(url: str) -> None:
    """A trial of one step that takes longer than its lease is not claimed by another owner."""
    study = new_study(url, [{"rate": 1.0, "seconds": 4.0}], 1, lease=3)
    other = Study.load("study", storage=url, scheduler=Ladder((1,)))
    thread = threading.Thread(target=run, args=(study, trainables.Counter))
    thread.start()
    claims = []
    while thread.is_alive():
        if jobs(study):
            claims.append(other.ask())
        time.sleep(0.05)
    assert set(claims) == {None}
    assert ends(jobs(study)) == [(0, 1, 1.0)]


def test_a_trial_of_a_killed_process_continues_from_its_checkpoint(url: str, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    configs: list[dict[str, Any]] = [{"rate": 1.0, "dies_at": 3, "notes": str(notes)}, {"rate": 2.0}]
    heard = Heard()
    study = new_study(url, configs, 5)
    records = run(study, trainables.Counter, workers=2, callbacks=[heard])
    assert ends(records) == [(0, 5, 5.0), (1, 5, 10.0)]
    assert notes.read_text().split() == ["1", "2", "3", "3", "4", "5"]
    assert ("lost", 0, "its process was killed by SIGKILL") in heard.events
    assert [record["kind"] for record in records if record["trial"] == 0].count("expired") == 1


def test_a_trial_that_kills_its_processes_is_an_error(url: str) -> None:
    study = new_study(url, [{}])
    records = run(study, trainables.dying, workers=1)
    why = "its process was lost 3 times after step 0, at last killed by SIGKILL; it is not tried again"
    assert ends(records) == [(0, why)]


def test_a_trial_that_progresses_between_deaths_is_retried(url: str) -> None:
    study = new_study(url, [{"rate": 1.0}], 4)
    records = run(study, trainables.Mortal, workers=1)
    assert ends(records) == [(0, 4, 4.0)]
    assert [record["kind"] for record in records].count("expired") == 3


def test_a_trainable_that_cannot_be_pickled_is_rejected(url: str) -> None:
    study = new_study(url, [{}])
    with pytest.raises(OptionError, match=r"cannot be sent to another process: .* with workers=0"):
        run(study, lambda config: 1.0, workers=1)
    assert jobs(study) == []


@pytest.mark.parametrize("what", [3, lambda: 1, lambda a, b, c, d: 1])
def test_invalid_trainables_are_rejected(url: str, what: Callable[..., Any]) -> None:
    with pytest.raises(OptionError, match=r"a trainable is a class of Trainable, f\(config\), f"):
        run(new_study(url, [{}]), what)


@pytest.mark.postgres
def test_a_run_survives_a_restart_of_the_server(server: Server) -> None:
    study = new_study(server.new_database(), 4 * [{"rate": 1.0, "seconds": 0.1}], 5)
    result: list[list[Record]] = []
    thread = threading.Thread(target=lambda: result.append(run(study, trainables.Counter, workers=2)))
    thread.start()
    while not jobs(study):
        time.sleep(0.05)
    server.stop("immediate")
    time.sleep(0.5)
    server.start()
    thread.join(300)
    [records] = result
    assert ends(records) == [(trial, 5, 5.0) for trial in range(4)]
    steps = [(record["trial"], record["step"]) for record in records if record["kind"] == "reported"]
    assert sorted(steps) == [(trial, step) for trial in range(4) for step in range(1, 5)]
