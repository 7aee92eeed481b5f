"""Histories of stores are strictly serializable, and a job is a mutex; the checker finds known anomalies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from onlineauto.tune.store import MemoryStore, Record, Store
from tests.tune.store.histories import Event, list_append, mutex
from tests.tune.store.jobs import STUDY, Counting, new_store


def events(*steps: tuple[Any, ...]) -> list[Event]:
    """Return a history of (process, type, value) or (process, type, f)."""
    return [
        {"process": process, "type": kind, "f": value if isinstance(value, str) else "txn", "value": value}
        for process, kind, value in steps
    ]


def alone(*transactions: tuple[str, list[Any]]) -> list[Event]:
    """Return a history of transactions one after the other, each (type, value)."""
    steps = [((at, "invoke", value), (at, kind, value)) for at, (kind, value) in enumerate(transactions)]
    return events(*(each for pair in steps for each in pair))


def at_once(*transactions: tuple[str, list[Any]]) -> list[Event]:
    """Return a history in which all transactions are concurrent."""
    begins = [(at, "invoke", value) for at, (_, value) in enumerate(transactions)]
    return events(*begins, *((at, kind, value) for at, (kind, value) in enumerate(transactions)))


GOOD = {
    "nothing": [],
    "append, then read": alone(("ok", [["append", "x", 1]]), ("ok", [["r", "x", [1]]])),
    "own append is read": alone(("ok", [["append", "x", 1], ["r", "x", [1]]])),
    "concurrent read sees it or not": at_once(
        ("ok", [["append", "x", 1]]), ("ok", [["r", "x", [1]]]), ("ok", [["r", "x", []]])
    ),
    "unknown append may have happened": alone(("info", [["append", "x", 1]]), ("ok", [["r", "x", [1]]])),
    "unknown append may not have": alone(("info", [["append", "x", 1]]), ("ok", [["r", "x", []]])),
    "failed append is not there": alone(("fail", [["append", "x", 1]]), ("ok", [["r", "x", []]])),
}
BAD = {
    "lost": (alone(("ok", [["append", "x", 1]]), ("ok", [["r", "x", []]])), "G2: cycle of realtime, rw"),
    "stale": (
        alone(
            ("ok", [["append", "x", 1]]),
            ("ok", [["append", "x", 2]]),
            ("ok", [["r", "x", [1]]]),
            ("ok", [["r", "x", [1, 2]]]),
        ),
        "G2: cycle",
    ),
    "order": (
        at_once(
            ("ok", [["append", "x", 1]]),
            ("ok", [["append", "x", 2]]),
            ("ok", [["r", "x", [1, 2]]]),
            ("ok", [["r", "x", [2]]]),
        ),
        "incompatible orders",
    ),
    "aborted": (alone(("fail", [["append", "x", 1]]), ("ok", [["r", "x", [1]]])), "G1a"),
    "within": (
        at_once(("ok", [["append", "x", 1], ["append", "x", 2]]), ("ok", [["r", "x", [1]]])),
        "G1b",
    ),
    "twice": (alone(("ok", [["append", "x", 1]]), ("ok", [["r", "x", [1, 1]]])), "duplicate elements"),
    "phantom": (alone(("ok", [["r", "x", [7]]])), "never appended"),
    "internal": (alone(("ok", [["append", "x", 1], ["r", "x", []]])), "internal"),
    "write skew": (
        at_once(
            ("ok", [["r", "x", []], ["append", "y", 1]]),
            ("ok", [["r", "y", []], ["append", "x", 1]]),
        ),
        "G2: cycle of rw",
    ),
    "ww": (
        at_once(
            ("ok", [["append", "x", 1], ["append", "y", 1]]),
            ("ok", [["append", "x", 2], ["append", "y", 2]]),
            ("ok", [["r", "x", [1, 2]], ["r", "y", [2, 1]]]),
        ),
        "cycle",
    ),
    "circular information": (
        at_once(
            ("ok", [["append", "x", 1], ["r", "y", [1]]]),
            ("ok", [["append", "y", 1], ["r", "x", [1]]]),
        ),
        "G1c: cycle of wr",
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_history_has_no_anomaly(name: str) -> None:
    assert list_append(GOOD[name]) == []


@pytest.mark.parametrize("name", BAD)
def test_the_anomaly_of_a_bad_history_is_found(name: str) -> None:
    history, anomaly = BAD[name]
    assert any(anomaly in each for each in list_append(history)), list_append(history)


@pytest.mark.parametrize(
    ("steps", "is_good"),
    [
        (
            "0 invoke acquire, 0 ok acquire, 0 invoke release, 0 ok release, 1 invoke acquire, 1 ok acquire",
            True,
        ),
        ("0 invoke acquire, 0 ok acquire, 1 invoke acquire, 1 ok acquire", False),
        ("0 invoke acquire, 1 invoke acquire, 0 ok acquire, 1 fail acquire", True),
        (
            "0 invoke acquire, 0 ok acquire, 1 invoke acquire, 0 invoke release, 1 ok acquire, 0 ok release",
            True,
        ),
        (
            "0 invoke acquire, 0 ok acquire, 1 invoke acquire, 1 ok acquire, 0 invoke release, 0 ok release",
            False,
        ),
        ("0 invoke acquire, 0 info acquire, 1 invoke acquire, 1 ok acquire", True),
        (
            "0 invoke acquire, 0 ok acquire, 0 invoke release, 0 info release, 1 invoke acquire",
            True,
        ),
        ("1 invoke release, 1 ok release", False),
        ("0 invoke acquire, 0 ok acquire, 1 invoke release, 1 ok release", False),
    ],
)
def test_a_mutex_is_held_by_one_process(steps: str, *, is_good: bool) -> None:
    assert mutex(events(*(tuple(each.split()) for each in steps.split(", ")))) is is_good


class Recorder:
    """Records the events of several threads in their real order."""

    def __init__(self) -> None:
        self.history: list[Event] = []
        self._lock = threading.Lock()

    def note(self, process: int, kind: str, f: str, value: Any = None) -> None:
        with self._lock:
            self.history.append({"process": process, "type": kind, "f": f, "value": value})


def concurrently(work: Callable[[int], None], count: int = 4) -> None:
    threads = [threading.Thread(target=work, args=(process,)) for process in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def append_and_read(stores: Sequence[Store], each: int = 12) -> list[Event]:
    """Return the history of clients that append to the log and read it in alternation."""
    recorder = Recorder()

    def work(process: int) -> None:
        for step in range(each):
            element = f"m:{process}_{step}"
            recorder.note(process, "invoke", "txn", [["append", "log", element]])
            stores[process].append({"kind": "named", "trainable": element})
            recorder.note(process, "ok", "txn", [["append", "log", element]])
            recorder.note(process, "invoke", "txn", [["r", "log", None]])
            found = [record["trainable"] for record in stores[process].load() if record["kind"] == "named"]
            recorder.note(process, "ok", "txn", [["r", "log", found]])

    concurrently(work, len(stores))
    return recorder.history


def test_appends_and_reads_of_a_store_are_strictly_serializable(url: str) -> None:
    history = append_and_read([new_store(url) for _ in range(4)])
    assert list_append(history) == []
    assert max(len(event["value"][0][2] or ()) for event in history if event["value"][0][0] == "r") == 48


class Forgetful(MemoryStore):
    """A store with a fault: every fifth read misses the newest record."""

    reads = 0

    def load(self, after: int = 0) -> Sequence[Record]:
        self.reads += 1
        records = super().load(after)
        return records[:-1] if self.reads % 5 == 0 else records


def test_the_checker_finds_a_store_that_misses_a_record() -> None:
    store = Forgetful()
    store.begin(STUDY)
    anomalies = list_append(append_and_read([store]))
    assert anomalies
    assert "G2: cycle of realtime, rw" in anomalies[0]


def test_a_job_of_a_store_is_a_mutex(url: str) -> None:
    recorder = Recorder()
    new_store(url)

    def work(process: int) -> None:
        client = Counting(new_store(url), str(process), most=1)
        for _ in range(6):
            recorder.note(process, "invoke", "acquire")
            claim = client.claim()
            recorder.note(process, "fail" if claim is None else "ok", "acquire")
            if claim is not None:
                recorder.note(process, "invoke", "release")
                record = {"kind": "released", "trial": claim.trial, "attempt": claim.attempt}
                client.store.fail(claim, record)
                recorder.note(process, "ok", "release")

    concurrently(work)
    assert sum(event["type"] == "ok" for event in recorder.history) >= 2
    assert mutex(recorder.history)
