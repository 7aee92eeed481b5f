"""Jobs are run here or in processes; what fails, dies or is lost harms nothing else."""

from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.errors import OptionError
from onlineauto.tune.store.protocol import Claim
from onlineauto.tune.store.sql_store import SqlStore
from onlineauto.tune.store.stored_checkpoints import StoredCheckpoints
from onlineauto.tune.workers.callbacks import Callback
from onlineauto.tune.workers.controller import Controller
from onlineauto.tune.workers.heartbeat import Heartbeat
from onlineauto.tune.workers.running import run_here, run_in_processes
from onlineauto.tune.workers.stoppers import Plateau, Stopper, Target, Timeout
from tests.tune.store.jobs import jobs, new_store
from tests.tune.workers import trainables
from tests.tune.workers.ladder import Ladder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from onlineauto.tune.store.protocol import Record
    from onlineauto.tune.trial import Job
    from onlineauto.tune.workers.trainable import AnyTrainable, Config, Report
    from tests.tune.postgres import Server

pytestmark = pytest.mark.lane("ci")


class Heard(Callback):
    """Writes down what it hears."""

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


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    return new_store(f"sqlite:///{tmp_path / 'study.db'}")


def run(study: Ladder, what: AnyTrainable, *, workers: int = 0, **options: Any) -> list[Record]:
    """Run a study to its end and return its records."""
    store = study.store
    assert isinstance(store, SqlStore)
    heartbeat = Heartbeat(store, study.lease)
    controller = Controller(study, store, StoredCheckpoints(store), heartbeat=heartbeat, **options)
    if workers:
        run_in_processes(controller, what, workers)
    else:
        run_here(controller, what)
    return jobs(store)


def ends(records: Sequence[Record]) -> list[tuple[Any, ...]]:
    """How the jobs ended: trial, resource and value, or trial and why."""
    told = [(each["trial"], each["resource"], each["value"]) for each in records if each["kind"] == "told"]
    return sorted(told) + sorted((each["trial"], each["why"]) for each in records if each["kind"] == "failed")


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("what", [trainables.Counter, trainables.Reused, trainables.reporting])
def test_paused_trials_go_on_where_they_were(
    store: SqlStore, tmp_path: Path, what: AnyTrainable, workers: int
) -> None:
    configs = [{"rate": rate, "notes": str(tmp_path / f"{rate}")} for rate in (1.0, 2.0, 3.0)]
    study = Ladder(store, "me", configs=configs, resources=(2, 5))
    records = run(study, what, workers=workers)
    assert ends(records) == [(t, r, (t + 1.0) * r) for t in range(3) for r in (2, 5)]
    steps = [(each["trial"], each["step"]) for each in records if each["kind"] == "reported"]
    assert sorted(steps) == [(t, s) for t in range(3) for s in (1, 3, 4)]
    for config in configs:
        with open(config["notes"]) as file:  # type: ignore[call-overload]  # noqa: PTH123
            assert file.read().split() == ["1", "2", "3", "4", "5"]


def test_an_object_is_used_again_if_it_can(store: SqlStore) -> None:
    trainables.Counter.made = 0
    run(Ladder(store, "me", configs=5 * [{"rate": 1.0}]), trainables.Reused)
    assert trainables.Counter.made == 1


def test_a_function_may_just_return_its_value(store: SqlStore) -> None:
    study = Ladder(store, "me", configs=[{"rate": 1.5}, {"rate": 2}], resources=(1, 9))
    assert ends(run(study, trainables.plain)) == [(0, 1, 1.5), (0, 9, 1.5), (1, 1, 2.0), (1, 9, 2.0)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_trial_that_fails_harms_no_other(store: SqlStore, workers: int) -> None:
    configs = [{"rate": 1.0}, {"rate": 1.0, "fails_at": 2}, {"rate": math.nan}, {"rate": math.inf}]
    heard = Heard()
    records = run(
        Ladder(store, "me", configs=configs), trainables.Counter, workers=workers, callbacks=[heard]
    )
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
def test_a_value_is_a_number(store: SqlStore, value: object, why: str) -> None:
    study = Ladder(store, "me", configs=[{"rate": 1.0}], resources=(1,))
    assert ends(run(study, lambda config: value)) == [(0, why)]


def test_a_function_that_ends_early_has_its_last_value(store: SqlStore) -> None:
    def early(config: Config, resource: int, report: Report) -> None:
        report(1.0)
        report(0.5)

    study = Ladder(store, "me", configs=[{}], resources=(9,))
    assert ends(run(study, early)) == [(0, 9, 0.5)]


def test_what_cannot_be_saved_is_an_error_of_the_trial(store: SqlStore) -> None:
    def saves(config: Config, resource: int, report: Report) -> None:
        report(1.0, save=object())

    [(_, why)] = ends(run(Ladder(store, "me", configs=[{}]), saves))
    assert why.startswith("OptionError: a checkpoint is bytes, or what JSON can write, and not object")


def test_a_scheduler_stops_a_trial(store: SqlStore) -> None:
    study = Ladder(store, "me", configs=[{"rate": 1.0}, {"rate": 0.1}], resources=(9,), stop_above=3)
    assert ends(run(study, trainables.Counter)) == [(0, 9, 4.0), (1, 9, pytest.approx(0.9))]


@pytest.mark.parametrize(
    ("stopper", "told"),
    [
        (Plateau(values=3, tolerance=0.1), [(0, 99, 0.0), (1, 99, 99.0)]),
        (Target(5, mode="max"), [(0, 99, 0.0), (1, 99, 5.0)]),
        (Target(0), [(0, 99, 0.0)]),
        (Timeout(0), []),
    ],
)
def test_stoppers(store: SqlStore, stopper: Stopper, told: list[tuple[Any, ...]]) -> None:
    study = Ladder(store, "me", configs=[{"rate": 0.0}, {"rate": 1.0}], resources=(99,))
    assert ends(run(study, trainables.Counter, stoppers=[stopper])) == told


def test_callbacks_hear_everything(store: SqlStore) -> None:
    heard = Heard()
    run(Ladder(store, "me", configs=[{"rate": 1.0}]), trainables.Counter, callbacks=[heard], every=2)
    assert heard.events == [
        ("start", 0),
        ("report", 0, 1, 1.0),
        ("checkpoint", 0, 2),
        ("report", 0, 2, 2.0),
        ("checkpoint", 0, 3),
        ("result", 0, 3.0),
    ]


def test_an_error_of_a_callback_ends_the_run_and_no_trial(store: SqlStore) -> None:
    class Broken(Callback):
        def on_report(self, job: Job, step: int, value: float) -> None:
            raise ZeroDivisionError

    study = Ladder(store, "me", configs=[{"rate": 1.0}])
    with pytest.raises(ZeroDivisionError):
        run(study, trainables.Counter, callbacks=[Broken()])
    assert ends(jobs(store)) == []
    records = run(study, trainables.Counter)
    assert [each["kind"] for each in records] == ["asked", "reported", "expired", "asked", "reported", "told"]


def test_an_interrupt_gives_the_job_back(store: SqlStore) -> None:
    def interrupted(config: Config) -> None:
        raise KeyboardInterrupt

    study = Ladder(store, "me", configs=[{"rate": 1.0}])
    with pytest.raises(KeyboardInterrupt):
        run(study, interrupted)
    assert ends(run(Ladder(store, "you", configs=[{"rate": 1.0}]), trainables.Counter)) == [(0, 3, 3.0)]


def test_a_lost_lease_is_dropped_and_the_worker_goes_on(store: SqlStore) -> None:
    """Another worker has the first trial by the time of its second report."""
    heard = Heard()

    class Thief(Callback):
        def on_report(self, job: Job, step: int, value: float) -> None:
            if job.trial == 0 and job.attempt == 0:
                store.heartbeat([Claim(0, 0, "me")], 0)
                time.sleep(0.01)
                claimed = Ladder(store, "you", configs=2 * [{"rate": 1.0}]).ask()
                assert claimed is not None
                assert (claimed.trial, claimed.attempt) == (0, 1)
                threading.Timer(0.2, lambda: store.heartbeat([Claim(0, 1, "you")], 0)).start()

    study = Ladder(store, "me", configs=2 * [{"rate": 1.0}])
    records = run(study, trainables.Counter, callbacks=[heard, Thief()])
    assert next(event for event in heard.events if event[0] == "lost")[1] == 0
    assert ends(records) == [(0, 3, 3.0), (1, 3, 3.0)]
    assert [each["attempt"] for each in records if each["kind"] == "told" and each["trial"] == 0] == [2]


def test_leases_are_renewed(store: SqlStore) -> None:
    """A trial of one step that takes longer than its lease stays its owner's."""
    study = Ladder(store, "me", configs=[{"rate": 1.0, "seconds": 4.0}], resources=(1,), lease=3)
    other = Ladder(store, "you", configs=[{"rate": 1.0}], resources=(1,))
    thread = threading.Thread(target=run, args=(study, trainables.Counter))
    thread.start()
    claims = []
    while thread.is_alive():
        if jobs(store):
            claims.append(other.ask())
        time.sleep(0.05)
    assert set(claims) == {None}
    assert ends(jobs(store)) == [(0, 1, 1.0)]


def test_a_killed_process_loses_one_step(store: SqlStore, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    configs: list[dict[str, Any]] = [{"rate": 1.0, "dies_at": 3, "notes": str(notes)}, {"rate": 2.0}]
    heard = Heard()
    study = Ladder(store, "me", configs=configs, resources=(5,))
    records = run(study, trainables.Counter, workers=2, callbacks=[heard])
    assert ends(records) == [(0, 5, 5.0), (1, 5, 10.0)]
    assert notes.read_text().split() == ["1", "2", "3", "3", "4", "5"]
    assert ("lost", 0, "its process was killed by SIGKILL") in heard.events
    assert [each["kind"] for each in records if each["trial"] == 0].count("expired") == 1


def test_a_trial_that_kills_its_processes_is_an_error(store: SqlStore) -> None:
    study = Ladder(store, "me", configs=[{}])
    records = run(study, trainables.dying, workers=1)
    why = "its process was lost 3 times after step 0, at last killed by SIGKILL; it is not tried again"
    assert ends(records) == [(0, why)]


def test_a_trial_that_comes_further_each_time_is_tried_on(store: SqlStore) -> None:
    study = Ladder(store, "me", configs=[{"rate": 1.0}], resources=(4,))
    records = run(study, trainables.Mortal, workers=1)
    assert ends(records) == [(0, 4, 4.0)]
    assert [each["kind"] for each in records].count("expired") == 3


def test_what_no_process_can_import_is_refused(store: SqlStore) -> None:
    study = Ladder(store, "me", configs=[{}])
    with pytest.raises(OptionError, match=r"cannot be sent to another process: .* with workers=0"):
        run(study, lambda config: 1.0, workers=1)
    assert jobs(store) == []


@pytest.mark.parametrize("what", [3, lambda: 1, lambda a, b, c, d: 1])
def test_what_is_no_trainable_is_refused(store: SqlStore, what: Callable[..., Any]) -> None:
    with pytest.raises(OptionError, match=r"a trainable is a class of Trainable, f\(config\), f"):
        run(Ladder(store, "me", configs=[{}]), what)


@pytest.mark.postgres
def test_a_server_that_is_away_for_a_while_loses_nothing(server: Server) -> None:
    store = new_store(server.new_database())
    configs = 4 * [{"rate": 1.0, "seconds": 0.1}]
    study = Ladder(store, "me", configs=configs, resources=(5,))
    result: list[list[Record]] = []
    thread = threading.Thread(
        target=lambda: result.append(run(study, trainables.Counter, workers=2, patience=300))
    )
    thread.start()
    while not jobs(store):
        time.sleep(0.05)
    server.stop("immediate")
    time.sleep(0.5)
    server.start()
    thread.join(300)
    [records] = result
    assert ends(records) == [(trial, 5, 5.0) for trial in range(4)]
    steps = [(each["trial"], each["step"]) for each in records if each["kind"] == "reported"]
    assert sorted(steps) == [(trial, step) for trial in range(4) for step in range(1, 5)]
