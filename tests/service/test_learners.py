"""Several processes learn a long backlog together; a kill at any instant changes no bit."""

from __future__ import annotations

import io
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from onlineauto.cluster.partitions.coordinator import RoundSchedule
from onlineauto.cluster.partitions.pool import ThreadPool
from onlineauto.cluster.partitions.rounds import BlockRounds
from onlineauto.errors import InputError, WorkersError
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.rounds import Learners
from onlineauto.service.log.segment_log import SegmentLog
from tests.service.serving import Service
from tests.service.traffic import CONFIGURATION, records
from tests.waiting import until

DECISIONS = 2000
SCHEDULE = RoundSchedule(alone=200, head=8, shortest=64, longest=64, growth=8)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onlineauto.service.learning.rounds.LEAST_BYTES", 60_000)
    monkeypatch.setattr("onlineauto.service.learning.rounds.MOST_BYTES", 120_000)
    monkeypatch.setattr("onlineauto.service.learning.learner.MOST_RECORDS", 100)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = SegmentLog(tmp_path / "log")
    log.append([*records(DECISIONS)])
    log.sync()
    yield log
    log.close()


def learner_of(folder: Path, log: SegmentLog, learners: Learners | None) -> LogLearner:
    folder.mkdir(exist_ok=True)
    return LogLearner(folder, log, CONFIGURATION, learners=learners)


def finished(learner: LogLearner) -> bytes:
    """Learn all records, and return the model."""
    while learner.step():
        pass
    assert learner.learnt == DECISIONS
    file = io.BytesIO()
    learner.workspace.save(file)
    learner.close(snapshot=False)
    return file.getvalue()


def parts_of(folder: Path) -> list[list[int]]:
    return [[*map(int, line.split())] for line in (folder / "rounds").read_text().splitlines()]


def test_a_killed_learner_learns_the_same_parts_again(tmp_path: Path, log: SegmentLog) -> None:
    whole = finished(learner_of(tmp_path / "whole", log, BlockRounds(1, schedule=SCHEDULE)))
    planned = parts_of(tmp_path / "whole")
    assert len(planned) > 3
    assert all(end - begin <= 120_000 for begin, end in planned)
    draw, folder = Random(3), tmp_path / "killed"
    learner = learner_of(folder, log, BlockRounds(2, schedule=SCHEDULE))
    for number in range(8):
        learner.step()
        if number % 3 == 1:
            learner.snapshot()
        if draw.random() < 0.5 or number == 5:
            learner.close(snapshot=False)  # what was learnt since the snapshot is lost
            if number == 5:
                with (folder / "rounds").open("ab") as file:
                    file.write(b"123 4")  # the line of a part that was not begun
            learner = learner_of(folder, log, BlockRounds(1 + number % 2, schedule=SCHEDULE))
    assert finished(learner) == whole
    assert parts_of(folder) == planned


def test_parts_are_not_planned_again_by_a_learner_that_is_not_far_behind(
    tmp_path: Path, log: SegmentLog
) -> None:
    """The model of a learner that once was far behind, learnt again without a snapshot, record by record."""
    folder = tmp_path / "loop"
    expected = finished(learner_of(folder, log, BlockRounds(1, schedule=SCHEDULE)))
    again = learner_of(folder, log, BlockRounds(1, plans=False, schedule=SCHEDULE))
    assert finished(again) == expected
    alone = learner_of(tmp_path / "alone", log, None)
    other = learner_of(tmp_path / "other", log, BlockRounds(1, plans=False, schedule=SCHEDULE))
    assert finished(alone) == finished(other) != expected


def test_little_traffic_is_learnt_like_by_one_process(
    tmp_path: Path, log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.service.learning.rounds.LEAST_BYTES", 1 << 30)
    learner = learner_of(tmp_path / "loop", log, BlockRounds(2, schedule=SCHEDULE))
    assert finished(learner) == finished(learner_of(tmp_path / "alone", log, None))
    assert not (tmp_path / "loop" / "rounds").exists()


@pytest.mark.parametrize("number", [0, 2])
def test_workers_that_fail_are_tried_again_and_no_decision_is_learnt_alone(
    tmp_path: Path, log: SegmentLog, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    whole = finished(learner_of(tmp_path / "whole", log, BlockRounds(1, schedule=SCHEDULE)))
    learn, calls = ThreadPool.learn, iter(range(1000))

    def fail_once(self: ThreadPool, *arguments: object) -> object:
        if next(calls) == number:
            raise WorkersError("workers have died 9 times in a row")
        return learn(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(ThreadPool, "learn", fail_once)
    learner = learner_of(tmp_path / "failed", log, BlockRounds(1, schedule=SCHEDULE))
    with pytest.raises(WorkersError, match="9 times"):
        finished(learner)
    assert finished(learner) == whole
    assert learner.faulty == learner.skipped == 0
    assert next(calls) > number + 1
    assert parts_of(tmp_path / "failed") == parts_of(tmp_path / "whole")


@pytest.mark.parametrize("content", [b"0 100\nx\n", b"100 100\n", b"0 100\n50 150\n"])
def test_a_damaged_file_of_parts_is_located(tmp_path: Path, log: SegmentLog, content: bytes) -> None:
    folder = tmp_path / "loop"
    folder.mkdir()
    (folder / "rounds").write_bytes(content)
    with pytest.raises(InputError, match=rf"rounds:{len(content.splitlines())}: a line has the begin"):
        learner_of(folder, log, BlockRounds(1))


def test_models_that_cannot_be_learnt_together_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from onlineauto.cli.main import main

    words = ["serve", str(tmp_path), "--cb_explore_adf", "--learners", "2"]
    assert main(words) == 2
    assert "--learners needs --automl" in capsys.readouterr().err
    assert main([*words, "--follow", "http://127.0.0.1:1"]) == 2
    assert "--learners is for the learner" in capsys.readouterr().err


DECISIONS = 30_000
WORDS = ("--learners", "2", "--snapshot_every", "0.1", "--quiet")


def model_of(folder: Path, log: SegmentLog) -> tuple[bytes, int]:
    learner = LogLearner(folder, log, CONFIGURATION, learners=BlockRounds(1, plans=False))
    while learner.step():
        pass
    file = io.BytesIO()
    learner.workspace.save(file)
    learner.close(snapshot=False)
    return file.getvalue(), learner.learnt


@pytest.mark.ci
def test_each_decision_is_learnt_once_and_the_model_is_that_of_the_log(tmp_path: Path) -> None:
    folder, draw = tmp_path / "loop", Random(1)
    log = SegmentLog(folder / "log")
    log.append([*records(DECISIONS)])
    log.sync()
    log.close()
    for _ in range(3):
        service = Service(folder, *WORDS).start()
        until(lambda: (folder / "rounds").exists() or service.process.poll() is not None)  # noqa: B023
        time.sleep(draw.random())
        service.kill()
    with Service(folder, *WORDS):
        pass
    log = SegmentLog(folder / "log")
    parts = [[*map(int, line.split())] for line in (folder / "rounds").read_text().splitlines()]
    assert sum(end - begin for begin, end in parts) > 4 << 20
    whole = tmp_path / "whole"
    whole.mkdir()
    shutil.copy(folder / "rounds", whole)
    wanted, learnt = model_of(whole, log)
    assert learnt == DECISIONS
    assert model_of(folder, log) == (wanted, learnt)
    log.close()
