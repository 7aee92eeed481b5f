"""The conformance suite of stores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import inf, isnan, nan
from typing import TYPE_CHECKING, Any

from onlineauto.tune.store import Claim, LeaseLost, StudySnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.tune.store import Record, Store

_STUDY = {"kind": "study", "settings": {"space": {"x": [1, 2.5, None, True, "é"]}}}
_LONG = 3600.0


def check_store(make: Callable[[], Store], *, pass_time: Callable[[float], None], threads: int = 4) -> None:
    """Check a store against the requirements of a study.

    The log keeps its records unchanged and in order; a study begins once. A claim passes all records written
    before to its function, and is written atomically. No two claims get the same job. An owner whose lease
    has expired cannot write. Snapshots never go back.

    Parameters
    ----------
    make : callable
        Returns a store without records.
    pass_time : callable
        Advances the time by a number of seconds for the leases of the latest store.
    threads : int
        Number of threads that claim at the same time.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement.

    Examples
    --------
    >>> from onlineauto.tune.store import MemoryStore
    >>> now = [0.0]
    >>> def pass_time(seconds):
    ...     now[0] += seconds
    >>> check_store(lambda: MemoryStore(lambda: now[0]), pass_time=pass_time)
    """
    _check_log(make())
    _check_claims(make())
    _check_leases(make(), pass_time)
    _check_threads(make(), threads)
    _check_snapshots(make())


def _job_record(trial: int, attempt: int = 0, owner: str = "a") -> Record:
    config = {"x": 0.1, "word": "é"}
    return {
        "kind": "asked",
        "trial": trial,
        "attempt": attempt,
        "owner": owner,
        "config": config,
        "resource": 3,
        "resume_from": [0, 1],
    }


def _value_record(trial: int, value: float, attempt: int = 0) -> Record:
    return {"kind": "told", "trial": trial, "attempt": attempt, "resource": 3, "value": value}


def _claim(store: Store, trial: int, attempt: int = 0, owner: str = "a", lease: float = _LONG) -> Claim:
    store.claim(owner, lease, after=0, decide=lambda _: _job_record(trial, attempt, owner))
    return Claim(trial, attempt, owner)


def _check_log(store: Store) -> None:
    _require(list(store.load()) == [], "a new store has records")
    _require(store.begin(_STUDY) == _STUDY, "begin does not return the record that it wrote")
    other = {"kind": "study", "settings": {}}
    _require(store.begin(other) == _STUDY, "begin does not return record 1 of a study that exists")
    version = store.append({"kind": "enqueued", "config": {"x": -inf}})
    _require(version == 2, f"the second record has version {version}")
    _require(list(store.load())[1]["config"]["x"] == -inf, "an infinite number is changed")
    store.append({"kind": "enqueued", "config": {"x": nan}})
    _require(isnan(next(iter(store.load(2)))["config"]["x"]), "NaN is changed")


def _check_claims(store: Store) -> None:
    store.begin(_STUDY)
    seen: list[int] = []

    def decide(new: Sequence[Record]) -> Record | None:
        seen.append(len(new))
        return _job_record(0)

    after = store.claim("a", _LONG, after=0, decide=decide)
    _require(seen == [1], "decide is called with all records after a version, once")
    _require(list(after) == [_STUDY, _job_record(0)], f"claim returns {after}")
    _require(list(store.load()) == list(after), "a claim is not in the log")
    _require(not store.claim("a", _LONG, after=2, decide=lambda _: None), "a record without a job")
    idle = {"kind": "idle"}
    _require(list(store.claim("a", _LONG, after=2, decide=lambda _: idle)) == [idle], "idle is not written")
    claim = Claim(0, 0, "a")
    reported = {"kind": "reported", "trial": 0, "attempt": 0, "step": 1, "value": 0.1}
    _require(store.commit(claim, reported) == 4, "commit does not return the version")
    store.append({"kind": "named", "trainable": "a:b"})
    again = store.commit(claim, reported)
    of_itself = again > 0 and list(store.load(again - 1)) == [reported]
    _require(again == 0 or of_itself, "a step that is reported again has the version of another record")
    version = len(store.load())
    _require(store.commit(claim, _value_record(0, inf)) == version + 1, "commit does not return the version")
    committed = [each for each in store.load(3) if each["kind"] != "named"]
    _require(
        committed[:1] + committed[-1:] == [reported, _value_record(0, inf)], "what was committed is changed"
    )
    _check_lost(store, lambda: store.commit(claim, _value_record(0, 2.0)), "recorded twice")

    def fails(new: Sequence[Record]) -> Record | None:
        raise KeyError(len(new))

    before = list(store.load())
    try:
        store.claim("a", _LONG, after=0, decide=fails)
    except KeyError:
        pass
    else:
        raise AssertionError("an error of decide is lost")
    _require(list(store.load()) == before, "a claim is written though decide raised")


def _check_leases(store: Store, pass_time: Callable[[float], None]) -> None:
    store.begin(_STUDY)
    short, renewed, failing = (_claim(store, trial, lease=2.0) for trial in range(3))
    pass_time(1.2)
    _require(list(store.heartbeat([renewed, short], 100.0)) == [], "a valid lease is reported as lost")
    store.heartbeat([short], 2.0)
    store.fail(failing, {"kind": "failed", "trial": 2, "attempt": 0, "why": "é", "final": True})
    pass_time(3.0)
    expired = {"kind": "expired", "trial": 0, "attempt": 0}
    records: list[Record] = []
    store.claim("b", _LONG, after=0, decide=records.extend)
    _require(records[-1] == expired, "an expired lease is not recorded before decide is called")
    _require([each["kind"] for each in records].count("expired") == 1, "more than one lease expired")
    _require(
        list(store.heartbeat([short, renewed], 100.0)) == [short], "heartbeat does not return lost claims"
    )
    _check_lost(
        store, lambda: store.commit(short, _value_record(0, 1.0)), "recorded after the lease was lost"
    )
    _check_lost(store, lambda: store.fail(short, _value_record(0, 1.0)), "failed after the lease was lost")
    again = _claim(store, 0, attempt=1, owner="b")
    _check_lost(
        store, lambda: store.commit(short, _value_record(0, 1.0)), "recorded while another worker has the job"
    )
    _check_lost(
        store, lambda: store.commit(Claim(0, 1, "a"), _value_record(0, 1.0, 1)), "recorded by another owner"
    )
    store.commit(again, _value_record(0, 1.0, 1))


def _check_lost(store: Store, write: Callable[[], Any], action: str) -> None:
    before = list(store.load())
    try:
        write()
    except LeaseLost:
        pass
    else:
        raise AssertionError(f"no LeaseLost: {action}")
    _require(list(store.load()) == before, f"something was written: {action}")


def _check_threads(store: Store, threads: int) -> None:
    """Let several threads number jobs by the records in the log; a repeated number is a double claim."""
    store.begin(_STUDY)
    each = 10

    def claim(owner: str) -> None:
        for _ in range(each):
            store.claim(owner, _LONG, after=0, decide=lambda new: _job_record(len(new), owner=owner))

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(claim, [f"owner {number}" for number in range(threads)]))
    trials = [record["trial"] for record in store.load(1)]
    _require(trials == list(range(1, threads * each + 1)), f"claims are lost or double: {trials}")


def _check_snapshots(store: Store) -> None:
    _require(store.snapshot() is None, "a new store has a snapshot")
    store.begin(_STUDY)
    newer = StudySnapshot(7, {"a": [1.5, None, inf]})
    store.save(newer)
    store.save(StudySnapshot(3, {}))
    _require(store.snapshot() == newer, "the newest snapshot is not kept as it is")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)
