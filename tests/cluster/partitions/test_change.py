"""After a change of the stream, one learner continues; a run that is complete is not continued."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.cluster.partitions.coordinator import ChangeTest, RoundSchedule
from onlineauto.cluster.partitions.run import PartitionedRun

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "live_configs": 2, "bit_precision": 12}
SHORT = RoundSchedule(alone=1280, head=8, shortest=128, longest=128, growth=4)
CHANGE, EVENTS = 3100, 4600


class Results:
    """Losses of labelled events, like outcomes."""

    def __init__(self, losses: np.ndarray[Any, Any]) -> None:
        self.loss, self.labelled = losses, np.ones(len(losses), np.bool_)


def rounds(draw: np.random.Generator, mean: float, n: int = 4) -> list[Any]:
    return [Results(draw.normal(mean, 1.0, size=300)) for _ in range(n)]


def test_a_rise_of_losses_is_found_at_its_chunk() -> None:
    draw, test = np.random.default_rng(1), ChangeTest()
    for _ in range(8):
        chunks = rounds(draw, 0.0)
        assert test.first_changed(chunks) == 4
        test.note(chunks)
    assert test.first_changed(rounds(draw, -0.5)) == 4  # losses that fall are no change
    assert test.first_changed(rounds(draw, 0.0, 2) + rounds(draw, 0.4, 2)) == 1  # one chunk before
    assert test.first_changed(rounds(draw, 0.4)) == 0
    again = ChangeTest(*test.state())
    assert again.state() == test.state()


def test_a_small_rise_is_found_after_several_rounds() -> None:
    draw, test, found = np.random.default_rng(2), ChangeTest(), []
    for number in range(12):
        chunks = rounds(draw, 0.09 if number >= 8 else 0.0)
        found.append(test.first_changed(chunks))
        test.note(chunks)
    assert 0 in found[8:]


def test_a_steady_stream_has_few_alarms() -> None:
    draw, alarms = np.random.default_rng(3), 0
    test = ChangeTest()
    for _ in range(400):
        chunks = rounds(draw, 0.0)
        alarms += test.first_changed(chunks) < 4
        test.note(chunks)
    assert alarms <= 8


@pytest.mark.parametrize("gain", [-0.1, 0.3])
def test_a_change_is_confirmed_if_one_learner_loses_less(gain: float) -> None:
    draw, test = np.random.default_rng(4), ChangeTest()
    test.note(rounds(draw, 0.0))
    chunks = rounds(draw, 0.5)
    alone: list[Any] = [Results(each.loss - draw.normal(gain, 0.5, size=len(each.loss))) for each in chunks]
    test.confirm(700, alone, chunks)
    assert test.begin == (700 if gain > 0 else 0)


def text(changes: bool = True) -> bytes:
    """Three actions; which one is paid depends on the user, and changes."""
    draw, lines = random.Random(5), []
    for number in range(EVENTS):
        user, chosen = draw.randrange(3), draw.randrange(3)
        best = (user + (changes and number >= CHANGE)) % 3
        paid = draw.random() < (0.9 if chosen == best else 0.1)
        lines.append(f"shared |u u{user} x{draw.randrange(9)}")
        lines += [f"{f'0:{-int(paid)}:0.333 ' if j == chosen else ''}|a a{j}" for j in range(3)]
        lines.append("")
    return "\n".join([*lines, ""]).encode()


def run_of(path: Path, workers: int = 1, **options: Any) -> PartitionedRun:
    return PartitionedRun(Workspace(**OPTIONS), path, workers=workers, schedule=SHORT, **options)


def checkpoint(run: PartitionedRun) -> bytes:
    file = io.BytesIO()
    run.checkpoint(file)
    return file.getvalue()


def finish(run: PartitionedRun) -> tuple[bytes, bytes]:
    with run:
        scores = [outcomes.score.tobytes() for _, outcomes in run]
        return checkpoint(run), b"".join(scores)


@pytest.mark.ci
def test_after_a_change_one_learner_continues(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(text())
    run = run_of(path)
    lengths, begins = [], []
    with run:
        for block, _ in run:
            lengths.append(len(block))
            begins.append(run._coordinator.change.begin)
    assert sum(lengths) == EVENTS
    assert CHANGE - 600 < begins[-1] <= CHANGE  # events in mid-round are learnt again from its begin
    assert len(set(begins)) == 2
    path.write_bytes(text(changes=False))
    steady = run_of(path)
    finish(steady)
    assert steady._coordinator.change.begin == 0


@pytest.mark.ci
def test_a_change_is_learnt_alike_by_any_workers_and_after_any_pause(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(text())
    expected = finish(run_of(path))
    assert finish(run_of(path, 2)) == expected
    assert finish(PartitionedRun(Workspace(**OPTIONS), path.read_bytes(), schedule=SHORT)) == expected
    for stop in (CHANGE - 300, CHANGE + 100, CHANGE + 700):
        scores: list[bytes] = []
        with run_of(path) as run:
            while run.position.events < stop:
                taken = run._next()
                assert taken is not None
                scores.append(taken[1].score.tobytes())
            scores += [outcomes.score.tobytes() for _, outcomes in run._ready]
            saved = checkpoint(run)
        model, rest = finish(PartitionedRun.resume(saved, path, schedule=SHORT, workers=2))
        assert (model, b"".join([*scores, rest])) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_a_complete_run_is_not_completed_again(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "events.txt"
    path.write_bytes(text())
    saved, _ = finish(run_of(path))
    for _ in range(2):
        again, scores = finish(PartitionedRun.resume(saved, path, schedule=SHORT, workers=workers))
        assert again == saved
        assert not scores
