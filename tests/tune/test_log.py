"""The log of a study: a record that cannot be applied is skipped; the log ends at one that cannot be read."""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError, StoreError
from onlineauto.tune import Float, Searcher, State, Study, copy_study
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.hyperband import Hyperband
from onlineauto.tune.store import MemoryStore, Record, Store, open_store
from onlineauto.tune.store.store_reader import StoreReader
from onlineauto.tune.trial import Job
from onlineauto.tune.watching import StudyWatch
from tests.tune.store.test_sql_store import execute
from tests.tune.studies import asked, state_of

SPACE = {"x": Float(0, 1)}
SCHEDULERS = ["hyperband", "race", "dehb", "asha", "median", "pbt", "fifo"]


def run_to_the_end(study: Study) -> None:
    while (job := study.ask()) is not None:
        if job.resource > 1:
            study.report(job, 1, job.config["x"])  # type: ignore[arg-type]
        study.tell(job, job.config["x"])


def applied_state(study: Study) -> dict[str, Any]:
    """Return the state without the number of records and those that were skipped."""
    return {name: part for name, part in state_of(study).items() if name not in ("skipped", "version")}


UNFIT: list[Record] = [
    {"kind": "told", "trial": 999, "attempt": 0, "resource": 1, "value": 0.5},
    {"kind": "told", "trial": 0, "attempt": 77, "resource": 1, "value": 0.5},
    {"kind": "told", "trial": 0, "attempt": 0, "resource": "one", "value": None},
    {"kind": "reported", "trial": 0, "attempt": 0, "step": 1.5, "value": 0.5},
    {"kind": "reported", "trial": 0},
    {"kind": "failed", "trial": 0, "attempt": 55, "why": "x", "final": True},
    {
        "kind": "asked",
        "trial": 5000,
        "attempt": 0,
        "owner": "o",
        "config": {},
        "resource": 1,
        "resume_from": None,
    },
    {"kind": "expired", "trial": "zero", "attempt": 0},
    {"kind": "released", "trial": 0, "attempt": 33},
    {"kind": "enqueued", "config": {"y": 3}},
    {"kind": "extended", "max_trials": 1, "max_resource": 1},
    {"kind": "extended", "max_resource": 81},
    {"kind": "extended", "max_trials": 9},
    {"kind": "extended", "max_trials": 9.5, "max_resource": 9},
    {"kind": "extended", "max_trials": True, "max_resource": 9},
    {"kind": "extended", "max_trials": 10**30, "max_resource": 9},
    {"kind": "extended", "max_trials": 9, "max_resource": 10**30},
    {"kind": "extended", "max_trials": 9, "max_resource": [9]},
    {"kind": "extended", "max_trials": {}, "max_resource": 9},
    {"kind": "idle"},
    {"kind": "study", "settings": {}},
    {"kind": "something else"},
    {"no kind": 1},
]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("in_memory", [True, False])
def test_an_unfit_record_at_any_position_changes_nothing_else(
    scheduler: str, in_memory: bool, tmp_path: Path
) -> None:
    whole = MemoryStore()
    study = Study(SPACE, scheduler, storage=whole, max_resource=9, max_trials=8)
    run_to_the_end(study)
    records = whole.load()
    for position in range(1, len(records) + 1, 1 if in_memory else 7):
        unfit = UNFIT[position % len(UNFIT)]
        # A job's number of the scheduler's next trial makes the scheduler itself refuse the record.
        seen = [
            record for record in records[:position] if record["kind"] == "asked" and not record["attempt"]
        ]
        if position % 3 == 0:
            unfit = {**UNFIT[6], "trial": len(seen), "resource": 8, "config": {"x": 0.5}}
        store: Store = (
            MemoryStore() if in_memory else open_store(f"sqlite:///{tmp_path}/{position}.db", "study")
        )
        store.begin(records[0])
        for record in [*records[1:position], unfit, *records[position:]]:
            store.append(record)
        again = Study.load("study", storage=store)
        assert applied_state(again) == applied_state(study), unfit
        assert [skip.version for skip in again.skipped] == [position + 1], unfit
        assert again.history() == study.history()
        assert again.ask() is None


def written_log(scheduler: str, side_by_side: int) -> list[Record]:
    """Return the log of a completed study whose jobs ran in parallel."""
    store = MemoryStore()
    study = Study(SPACE, scheduler, storage=store, max_resource=9, max_trials=8)
    running: list[Job] = []
    while True:
        while len(running) < side_by_side and (job := study.ask()) is not None:
            running.append(job)
        if not running:
            return list(store.load())
        job = running.pop(0)
        if job.resource > 1:
            study.report(job, 1, job.config["x"])  # type: ignore[arg-type]
        study.tell(job, job.config["x"])


def stored_log(records: list[Record], url: str) -> None:
    store = open_store(url, "study")
    store.begin(records[0])
    for record in records[1:]:
        store.append(record)


def check_copy(records: list[Record], position: int, storage: str) -> None:
    """Check that a copy has exactly the records before a damaged one, and continues to its end."""
    with pytest.raises(
        StoreError, match=rf"record {position + 1} of study 'study' .*copy the {position} records"
    ):
        Study.load("study", storage=storage)
    copied, expected = MemoryStore(), MemoryStore()
    copy_study(from_study_name="study", from_storage=storage, to_storage=copied)
    assert list(copied.load()[:position]) == records[:position]
    assert {record["kind"] for record in copied.load()[position:]} <= {"expired"}
    for record in records[:position]:
        expected.append(record)
    again = Study.load("study", storage=copied)
    assert again.history() == Study.load("study", storage=expected).history()
    run_to_the_end(again)
    assert again.is_done
    assert again.skipped == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_log_ends_at_damaged_bytes_and_the_records_before_them_can_be_copied(
    scheduler: str, tmp_path: Path
) -> None:
    records, whole = written_log(scheduler, 2), tmp_path / "whole.db"
    stored_log(records, f"sqlite:///{whole}")
    with closing(sqlite3.connect(whole)) as file, file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for position in range(1, len(records), 5):
        copy = tmp_path / f"{position}.db"
        copy.write_bytes(whole.read_bytes())
        with closing(sqlite3.connect(copy)) as file, file:
            query = "SELECT CAST(body AS BLOB) FROM onlineauto_record WHERE version = ?"
            (body,) = file.execute(query, (position + 1,)).fetchone()
            byte = position * 7 % len(body)
            damaged = body[:byte] + bytes([body[byte] ^ 0xA1]) + body[byte + 1 :]
            change = "UPDATE onlineauto_record SET body = CAST(? AS TEXT) WHERE version = ?"
            file.execute(change, (damaged, position + 1))
        check_copy(records, position, f"sqlite:///{copy}")


def test_a_log_ends_at_a_missing_record(url: str) -> None:
    records = written_log("fifo", 1)
    stored_log(records, url)
    execute(url, "DELETE FROM onlineauto_record WHERE version = 6")
    check_copy(records, 5, url)


def test_a_running_study_ends_at_a_damaged_record(url: str) -> None:
    study = Study(SPACE, "fifo", storage=url, max_trials=9, max_resource=1)
    other = Study.load("study", storage=url)
    study.tell(asked(study), 0.5)
    execute(url, "UPDATE onlineauto_record SET crc = 7 WHERE version = 3")
    with pytest.raises(StoreError, match=r"record 3 of study 'study' .* is damaged"):
        other.ask()


def test_a_copy_keeps_unfit_records_and_releases_running_jobs(url: str) -> None:
    study = Study(SPACE, "fifo", storage=url, max_trials=3, max_resource=1)
    job = asked(study)
    study.tell(asked(study), 0.5)
    foreign = [UNFIT[0], UNFIT[1], UNFIT[7], UNFIT[9], *UNFIT[-2:]]
    store = open_store(url, "study")
    for record in foreign:
        store.append(record)
    copied = MemoryStore()
    copy_study(from_study_name="study", from_storage=url, to_storage=copied)
    again = Study.load("study", storage=copied)
    assert len(again.skipped) == len(foreign)
    second = asked(again)
    assert (second.trial, second.attempt, second.config) == (job.trial, 1, job.config)


def test_records_that_cannot_be_applied_are_not_read_elsewhere(url: str) -> None:
    study = Study(SPACE, "fifo", storage=url, max_trials=9, max_resource=1)
    study.enqueue({"x": 0.5})
    unfit: list[Record] = [{"no": "kind"}, {"kind": "enqueued"}, {"kind": "enqueued", "config": {"x": 7}}]
    store = open_store(url, "study")
    for record in unfit:
        store.append(record)
    for _ in range(2):
        study.enqueue_trial({"x": 0.5}, skip_if_exists=True)
        study.enqueue_trial({"x": 0.25}, skip_if_exists=True)
    assert [asked(study).config for _ in range(2)] == [{"x": 0.5}, {"x": 0.25}]
    assert study.history() == []
    reader = StoreReader(url)
    description = StudyWatch(reader.study("study")).describe()
    reader.close()
    assert (description["n_skipped"], description["trials"]) == (3, 2)


def test_a_copy_needs_a_study_and_a_free_name(url: str) -> None:
    written = MemoryStore()
    with pytest.raises(OptionError, match="no study 'study' with a readable record"):
        copy_study(from_study_name="study", from_storage=written, to_storage=url)
    Study(SPACE, "fifo", storage=written, max_trials=2).run(lambda config: config["x"])
    copy_study(from_study_name="study", from_storage=written, to_storage=url, to_study_name="other")
    assert Study.load("other", storage=url).is_done
    with pytest.raises(OptionError, match="the study 'other' exists already"):
        copy_study(from_study_name="study", from_storage=written, to_storage=url, to_study_name="other")


def test_a_skipped_record_is_reported_once_with_its_position(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    study = Study(SPACE, storage=store)
    store.append(UNFIT[0])
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            study.refresh()
            assert asked(study).trial >= 0
    warnings = [record.getMessage() for record in caplog.records if "is skipped" in record.getMessage()]
    assert warnings == [
        "record 2 of study 'study' (told) cannot be applied, and is skipped: there is no trial 999"
    ]
    (skipped,) = study.skipped
    assert (skipped.version, skipped.kind, skipped.why) == (2, "told", "there is no trial 999")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_report_beyond_the_rung_counts_as_one_at_the_rung(scheduler: str, url: str) -> None:
    arguments: dict[str, Any] = {"storage": url, "min_resource": 3, "max_resource": 27, "max_trials": 40}
    study = Study(SPACE, scheduler, **arguments)
    for _ in range(3):
        job = asked(study)
        study.tell(job, 0.5)
    job = asked(study)
    step = next(step for step in range(2, 100, 2) if study.report(job, step, 0.25) == "STOP")
    assert step <= job.resource + 1
    study.tell(job, 0.25)
    assert max(study.trials[job.trial].values) <= job.resource
    assert asked(study).trial > 0
    assert asked(Study.load("study", storage=url)).trial > 0
    assert asked(Study(SPACE, scheduler, **arguments)).trial > 0
    assert study.skipped == []


class Twice(Hyperband):
    """Raises an error for trial 1, once, or each time."""

    name = "twice"
    errors = 0
    most = 1

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:
        changed = super().on_result(trial, resource, loss)
        if trial == 1 and Twice.errors < Twice.most:
            Twice.errors += 1
            raise ArithmeticError("a scheduler of one's own")
        return changed


@pytest.mark.parametrize("most", [1, 1000])
def test_an_error_of_a_scheduler_fails_at_most_one_trial(most: int, url: str) -> None:
    Twice.errors, Twice.most = 0, most
    study = Study(SPACE, Twice(), storage=url, max_resource=9, max_trials=9)
    best = study.run(lambda config: config["x"])
    assert best is not None
    assert study.is_done
    assert len(study.trials) == 9
    errored = [trial for trial in study.trials if trial.state is State.ERRORED]
    if most == 1:
        assert not errored
        assert study.skipped == []
    else:
        assert [trial.number for trial in errored] == [1]
        assert "ArithmeticError: a scheduler of one's own" in errored[0].error
        assert [skip.kind for skip in study.skipped] == ["told"]
    assert study.run(lambda config: config["x"]) is not None


class Hearing(Searcher):
    """Records the calls that it receives, and may raise an error in one of them."""

    name = "hearing"
    heard: list[tuple[Any, ...]]
    raises = ""
    proposal: Any = None

    def __init__(self) -> None:
        Hearing.heard = []

    def propose(self, number: int, rng: Any) -> Any:  # noqa: ARG002
        return self.proposal or {"x": number / 10}

    def _hear(self, *what: Any) -> None:
        if self.raises == what[0]:
            raise LookupError(what[0])
        self.heard.append(what)

    def on_report(self, config: Any, resource: int, loss: float) -> None:
        self._hear("report", config["x"], resource, loss)

    def on_result(self, config: Any, resource: int, loss: float) -> None:
        self._hear("result", config["x"], resource, loss)

    def on_retry(self, config: Any, why: str) -> None:
        self._hear("retry", config["x"], why)

    def on_error(self, config: Any) -> None:
        self._hear("error", config["x"])

    def on_complete(self, config: Any) -> None:
        self._hear("complete", config["x"])


def test_a_searcher_receives_each_step_error_and_completion() -> None:
    study = Study(SPACE, "fifo", Hearing(), max_resource=3, max_trials=2, mode="max", retries=1)
    job = asked(study)
    study.report(job, 1, 1.0)
    study.report(job, 2, 2.0)
    study.tell(job, 3.0)
    for _ in range(2):
        study.fail(asked(study), "bad luck")
    steps = [("report", 0.0, 1, -1.0), ("report", 0.0, 2, -2.0), ("result", 0.0, 3, -3.0), ("complete", 0.0)]
    assert Hearing.heard == [*steps, ("retry", 0.1, "bad luck"), ("error", 0.1)]


@pytest.mark.parametrize("what", ["report", "result", "retry", "error", "complete"])
def test_an_error_of_a_searcher_is_reported_and_the_study_continues(
    what: str, caplog: pytest.LogCaptureFixture
) -> None:
    searcher = type("Raising", (Hearing,), {"raises": what})()
    study = Study(SPACE, "fifo", searcher, max_resource=3, max_trials=4, retries=1)

    def trains(config: Any, resource: int, report: Callable[..., None]) -> None:
        for _ in range(resource):
            if config["x"] == 0.1:
                raise ValueError("bad")
            report(config["x"])

    best = study.run(trains)
    assert best is not None
    assert (best.value, len(study.trials), study.skipped) == (0.0, 4, [])
    assert f"raised an error in on_{what} of record" in caplog.text


@pytest.mark.parametrize("proposal", [{"x": 7.0}, {"y": 0.5}, {"x": None}, "x"])
def test_a_config_outside_the_space_is_rejected_by_name(proposal: Any, url: str) -> None:
    searcher = type("Wide", (Hearing,), {"name": "wide", "proposal": proposal})()
    study = Study(SPACE, "fifo", searcher, storage=url, max_trials=2)
    with pytest.raises(OptionError, match=r"searcher 'wide' proposed .*, which is not in the space"):
        study.ask()
    assert study.trials == []
    study.enqueue({"x": 0.5})
    study.tell(asked(study), 1.0)

    class Wild(FifoScheduler):
        name = "wild"

        def suggest(self, searcher: Searcher) -> Any:
            job = super().suggest(searcher)
            return job and job._replace(config=proposal)

    study = Study(SPACE, Wild(), storage=url, name="other", max_trials=2)
    with pytest.raises((OptionError, TypeError, AttributeError)):
        study.ask()
    assert study.trials == []


@pytest.mark.parametrize("record", [each for each in UNFIT if each.get("kind") == "extended"], ids=str)
def test_an_extension_that_cannot_be_applied_is_skipped(record: Record) -> None:
    store = MemoryStore()
    study = Study(SPACE, "hyperband", storage=store, max_resource=9, max_trials=4)
    store.append(record)
    study.refresh()
    assert [(skip.version, skip.kind) for skip in study.skipped] == [(2, "extended")]
    assert (study.settings.max_trials, study.settings.setting.max_resource) == (4, 9)
    run_to_the_end(study)
    assert len(study.trials) == 4


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("searcher", ["random", "quasi", "tpe", "grid", "own"])
def test_an_idle_record_fits_only_if_there_is_no_job(scheduler: str, searcher: str) -> None:
    whole = MemoryStore()
    own = Hearing() if searcher == "own" else None
    study = Study(SPACE, scheduler, own or searcher, storage=whole, max_resource=9, max_trials=6)
    study.tell(asked(study), 0.5)
    store = MemoryStore()
    store.begin(whole.load()[0])
    for record in [*whole.load()[1:], {"kind": "idle"}]:
        store.append(record)
    again = Study.load("study", storage=store, searcher=own)
    run_to_the_end(again)
    assert again.is_done
    assert len(again.trials) == (5 if searcher == "grid" and scheduler != "pbt" else 6)
    assert [skip.kind for skip in again.skipped] == ["idle"]
    fresh = Study.load("study", storage=store, searcher=own)
    assert applied_state(fresh) == applied_state(again)
    assert len(fresh.skipped) == 1
    assert "it says {'kind': 'idle'}" in fresh.skipped[0].why


@pytest.mark.parametrize("body", ["{", "{}", '{"version":1}', "[]", '{"version":9,"trainable":null}'])
@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_damaged_snapshot_is_replaced_by_the_log(
    body: str, has_checksum: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url, version = f"sqlite:///{tmp_path}/study.db", 9
    study = Study(SPACE, "fifo", storage=url, max_resource=1, max_trials=6)
    for _ in range(5):
        study.tell(asked(study), 0.5)
    crc = zlib.crc32(body.encode()) + version if has_checksum else 1
    with closing(sqlite3.connect(tmp_path / "study.db")) as file, file:
        file.execute("INSERT INTO onlineauto_snapshot VALUES (1, ?, ?, ?)", (version, body, crc))
    again = Study.load("study", storage=url)
    with caplog.at_level(logging.WARNING):
        assert len(again.trials) == 5
    assert "the snapshot of study 'study' is not used" in caplog.text
    again.tell(asked(again), 0.25)
    assert again.ask() is None
    assert again.best_trial.number == 5
    assert not again.skipped
