"""Several processes share a study: each job has one owner, and killed processes lose no trial."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from onlineauto.tune.store.protocol import Record
from tests.tune.store.jobs import jobs, new_store

pytestmark = pytest.mark.lane("ci")

ROOT = Path(__file__).resolve().parents[3]


def start(url: str, owner: str, *more: str, most: int, lease: float = 60) -> subprocess.Popen[str]:
    words = [sys.executable, "-m", "tests.tune.store.claimer", url, owner, *more]
    words += ["--most", str(most), "--lease", str(lease)]
    pipe = subprocess.PIPE if more else None
    return subprocess.Popen(words, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)


def started_together(url: str, count: int, *, most: int) -> list[subprocess.Popen[str]]:
    """Start processes that begin together when all of them are ready."""
    processes = [start(url, f"worker {number}", "--together", most=most) for number in range(count)]
    for each in processes:
        assert each.stdout is not None
        with each.stdout as said:
            assert said.readline() == "ready\n"
    for each in processes:
        assert each.stdin is not None
        each.stdin.close()
    return processes


def keys(records: Sequence[Record], kind: str) -> list[tuple[Any, ...]]:
    return [(record["trial"], record["attempt"]) for record in records if record["kind"] == kind]


def check_one_owner_at_a_time(records: Sequence[Record]) -> None:
    """Check that a trial is claimed only while it has no owner."""
    held: set[int] = set()
    for record in records:
        trial = record["trial"]
        if record["kind"] == "asked":
            assert trial not in held
            held.add(trial)
        else:
            assert trial in held
            if record["kind"] != "reported":
                held.remove(trial)
    assert not held


@pytest.mark.parametrize("most", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_no_job_is_claimed_twice_by_four_processes(url: str, most: int) -> None:
    store = new_store(url)
    processes = started_together(url, 4, most=most)
    assert [process.wait(600) for process in processes] == 4 * [0]
    records = jobs(store)
    check_one_owner_at_a_time(records)
    assert keys(records, "expired") == []
    assert sorted(keys(records, "told")) == [(trial, 0) for trial in range(most)]
    assert len(Counter(record["owner"] for record in records if record["kind"] == "asked")) > 1


@pytest.mark.parametrize(("most", "kills"), [(150, 3), pytest.param(5000, 60, marks=pytest.mark.slow)])
def test_killed_workers_lose_no_trial(url: str, most: int, kills: int) -> None:
    store = new_store(url)
    draw = random.Random(most)
    processes = [start(url, f"worker {number}", most=most, lease=1) for number in range(2)]
    killed = 0
    while len(keys(jobs(store), "told")) < most:
        if killed < kills and len(jobs(store)) > killed * most // kills:
            killed += 1
            victim = processes.pop(draw.randrange(len(processes)))
            victim.kill()
            victim.wait()
            processes.append(start(url, f"worker {killed + 1}", most=most, lease=1))
        time.sleep(0.02)
    assert [process.wait(600) for process in processes] == [0, 0]
    records = jobs(store)
    check_one_owner_at_a_time(records)
    assert sorted(trial for trial, _ in keys(records, "told")) == list(range(most))
