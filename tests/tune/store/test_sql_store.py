"""The log of a study in a database: claims, leases, and damaged records."""

from __future__ import annotations

import math
import sqlite3
import threading
import time
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from onlineauto.errors import OptionError, StoreError, UnreachableError
from onlineauto.testing import check_store
from onlineauto.tune.store.connection import connect, writing
from onlineauto.tune.store.protocol import Claim, DamagedLogError, LeaseLost, StudySnapshot
from onlineauto.tune.store.sql_store import SqlStore, names_of_studies
from tests.tune.store.jobs import STUDY, Counting, jobs, new_store, reported, told
from tests.waiting import until


def execute(url: str, statement: str) -> None:
    engine = connect(url)
    with engine.begin() as connection:
        connection.execute(sa.text(statement))
    engine.dispose()


def wait_until_over(store: SqlStore, owner: str, lease: float) -> Claim:
    """Wait until the lease of another owner has ended, and claim the trial."""
    claims: list[Claim] = []

    def is_claimed() -> bool:
        claim = Counting(store, owner, most=1, lease=lease).claim()
        claims.extend([] if claim is None else [claim])
        return claim is not None

    until(is_claimed)
    return claims[0]


def test_a_log_is_read_as_it_was_written(url: str) -> None:
    store = new_store(url)
    mine = Counting(store, "me")
    claim = mine.claim()
    assert claim == Claim(0, 0, "me")
    assert store.append({"kind": "enqueued", "config": {"rate": math.inf, "name": "ü\0'"}}) == 3
    assert store.commit(claim, reported(claim)) == 4
    assert store.commit(claim, told(claim, math.nan)) == 5
    again = SqlStore(url, "rates")
    kinds = [record["kind"] for record in again.load()]
    assert kinds == ["study", "asked", "enqueued", "reported", "told"]
    assert again.load(2)[0]["config"] == {"rate": math.inf, "name": "ü\0'"}
    assert math.isnan(again.load(4)[0]["value"])
    assert again.load(5) == []
    assert names_of_studies(url) == ["rates"]


def test_studies_of_a_database_are_independent(url: str) -> None:
    first, second = new_store(url, "first"), new_store(url, "second")
    assert Counting(first, "me").claim() == Counting(second, "me").claim() == Claim(0, 0, "me")
    assert len(jobs(first)) == len(jobs(second)) == 1
    assert names_of_studies(url) == ["first", "second"]


def test_a_claim_ends_once(url: str) -> None:
    store = new_store(url)
    claim = Counting(store, "me").take()
    for not_mine in (Claim(0, 0, "you"), Claim(0, 1, "me"), Claim(1, 0, "me")):
        for write in (reported, told):
            with pytest.raises(LeaseLost, match=f"trial {not_mine.trial}, attempt"):
                store.commit(not_mine, write(not_mine))
        with pytest.raises(LeaseLost):
            store.fail(not_mine, {"kind": "failed", "trial": 0, "attempt": 0, "why": "no"})
    assert store.fail(claim, {"kind": "failed", "trial": 0, "attempt": 0, "why": "no"}) == 3
    with pytest.raises(LeaseLost):
        store.commit(claim, told(claim))
    assert [record["kind"] for record in jobs(store)] == ["asked", "failed"]


def test_a_step_is_reported_once_by_an_attempt(url: str) -> None:
    store = new_store(url)
    claim = Counting(store, "me").take()
    assert [store.commit(claim, reported(claim, step)) for step in (1, 2, 2, 1, 3)] == [3, 4, 0, 0, 5]
    assert [record.get("step") for record in jobs(store)] == [None, 1, 2, 3]


def test_another_owner_may_claim_a_job_whose_lease_has_expired(url: str) -> None:
    store = new_store(url)
    mine = Counting(store, "me", most=1, lease=60).take()
    assert Counting(store, "you", most=1).claim() is None
    assert not store.heartbeat([mine], 0.2)
    yours = wait_until_over(store, "you", 60)
    assert yours == Claim(0, 1, "you")
    with pytest.raises(LeaseLost, match="attempt 0 is not me's any more"):
        store.commit(mine, told(mine))
    assert store.heartbeat([mine, yours], 60) == [mine]
    store.commit(yours, told(yours))
    assert [record["kind"] for record in jobs(store)] == ["asked", "expired", "asked", "told"]


def test_an_expired_lease_is_valid_until_another_owner_claims_the_job(url: str) -> None:
    store = new_store(url)
    claim = Counting(store, "me", lease=0.01).take()
    time.sleep(0.1)
    store.commit(claim, reported(claim))
    assert not store.heartbeat([claim], 60)
    assert Counting(store, "you", most=1).claim() is None


def test_a_lease_that_is_renewed_during_a_claim_stays_valid(url: str) -> None:
    store = new_store(url)
    claim = Counting(store, "me", most=1, lease=0.01).take()
    time.sleep(0.05)
    asked: list[Claim | None] = []
    other = Counting(new_store(url), "you", most=1)
    thread = threading.Thread(target=lambda: asked.append(other.claim()))
    with writing(store.engine) as connection:
        store.check(connection, claim)  # from here on, other writers wait
        thread.start()
        time.sleep(0.5)
        connection.execute(sa.text("UPDATE onlineauto_job SET lease_until = lease_until + 1000"))
    thread.join()
    assert asked == [None]
    assert [record["kind"] for record in jobs(store)] == ["asked"]


def test_a_store_that_was_replaced_is_rejected(url: str) -> None:
    with pytest.raises(StoreError, match="has 1 records, and 5 were read before"):
        new_store(url).load(5)


def test_nothing_is_written_if_the_decision_raises(url: str) -> None:
    store = new_store(url)

    def fail(records: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        store.claim("me", 60, after=1, decide=fail)
    assert jobs(store) == []
    assert Counting(store, "me").claim() == Claim(0, 0, "me")


def test_a_reader_sees_one_history_while_others_commit(url: str) -> None:
    """The records that were read at a claim never change."""
    store, other = new_store(url), SqlStore(url, "rates")
    mine, theirs = Counting(store, "me"), Counting(other, "you")
    first = mine.claim()
    seen = list(mine.records)
    for _ in range(3):
        claim = theirs.take()
        other.commit(claim, told(claim))
        assert store.load()[: len(seen)] == seen
    second = mine.claim()
    assert first is not None
    assert second is not None
    assert [record["kind"] for record in mine.records] == ["study", "asked", *3 * ["asked", "told"], "asked"]


def test_an_older_snapshot_does_not_replace_a_newer_one(url: str) -> None:
    store = new_store(url)
    assert store.snapshot() is None
    for version in (3, 7, 5):
        store.save(StudySnapshot(version, {"best": version}))
    assert store.snapshot() == StudySnapshot(7, {"best": 7})


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "DELETE FROM onlineauto_record WHERE version = 1",
            "record 1 of study 'rates' .* is missing; it has",
        ),
        (
            "UPDATE onlineauto_record SET crc = 7 WHERE version = 1",
            "record 1 of .* is damaged: its checksum is not",
        ),
        ("UPDATE onlineauto_record SET version = 9 WHERE version = 5", "record 5 of .* is missing"),
        ("UPDATE onlineauto_study SET version = 4", "record 5 of .* is one too many"),
        ("UPDATE onlineauto_schema SET version = 7", "has schema 7, which a later version of onlineauto"),
        ("DELETE FROM onlineauto_schema", "its schema has no version"),
    ],
)
def test_a_damaged_database_is_rejected_by_name(url: str, damage: str, message: str) -> None:
    store = new_store(url)
    mine = Counting(store, "me")
    for _ in range(2):
        claim = mine.take()
        store.commit(claim, told(claim))
    execute(url, damage)
    with pytest.raises(StoreError, match=message):
        SqlStore(url, "rates").load()


@pytest.mark.parametrize(
    ("damage", "position", "problem"),
    [
        ('UPDATE onlineauto_record SET body = \'{"kind":"told"}\' WHERE version = 2', 2, "is damaged"),
        ("UPDATE onlineauto_record SET body = substr(body, 1, 9) WHERE version = 3", 3, "is damaged"),
        ("UPDATE onlineauto_record SET crc = 7 WHERE version = 4", 4, "is damaged"),
        ("DELETE FROM onlineauto_record WHERE version = 2", 2, "is missing"),
        ("DELETE FROM onlineauto_record WHERE version = 5", 5, "is missing"),
    ],
)
def test_a_log_ends_at_a_damaged_record(url: str, damage: str, position: int, problem: str) -> None:
    store = new_store(url)
    mine = Counting(store, "me")
    for _ in range(2):
        claim = mine.take()
        store.commit(claim, told(claim))
    whole = store.load()
    execute(url, damage)
    with pytest.raises(DamagedLogError, match=rf"record {position} of study 'rates' .* {problem}") as error:
        SqlStore(url, "rates").load()
    assert error.value.records == whole[: position - 1]


def test_bytes_that_are_not_utf_8_are_a_damaged_record(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    store = new_store(url)
    store.append({"kind": "named", "trainable": "m:f"})
    execute(url, "UPDATE onlineauto_record SET body = CAST(x'7bff7d' AS TEXT) WHERE version = 2")
    with pytest.raises(DamagedLogError, match="record 2"):
        SqlStore(url, "rates").load()


def test_a_damaged_snapshot_is_rejected_by_name(url: str) -> None:
    store = new_store(url)
    store.save(StudySnapshot(3, {"best": 1}))
    execute(url, "UPDATE onlineauto_snapshot SET body = '{}'")
    with pytest.raises(StoreError, match=r"snapshot 3 in study 'rates' of .* is damaged"):
        store.snapshot()


def test_a_torn_database_is_rejected_by_name(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    path.write_bytes(b"SQLite format 3\0" + bytes(50))
    with pytest.raises(StoreError, match=r"study\.db"):
        new_store(f"sqlite:///{path}")


def test_a_schema_that_is_not_utf_8_is_rejected_by_name(tmp_path: Path) -> None:
    path = tmp_path / "study.db"
    new_store(f"sqlite:///{path}")
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    at = whole.index(b"CREATE TABLE onlineauto_job") + len("CREATE TABLE onlineauto_job")
    other = tmp_path / "other.db"
    other.write_bytes(whole[:at] + b" \x92" + whole[at + 2 :])
    with pytest.raises(StoreError, match=r"other\.db is damaged"):
        new_store(f"sqlite:///{other}")


def test_a_missing_study_is_reported_with_the_existing_ones(url: str) -> None:
    new_store(url)
    missing = SqlStore(url, "rate")
    assert missing.load() == []
    with pytest.raises(OptionError, match="has no study 'rate'; it has 'rates'"):
        missing.append({"kind": "enqueued", "config": {}})
    assert names_of_studies(url) == ["rates"]


def test_the_second_process_receives_the_settings_of_the_first(url: str) -> None:
    store, other = new_store(url), SqlStore(url, "rates")
    assert other.begin({"kind": "study", "settings": {"seed": 1}}) == STUDY
    assert store.load() == other.load() == [STUDY]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("study.db", "'study.db' is not the URL of a store; valid is sqlite:///FILE or postgresql://"),
        ("mysql://host/x", "a store cannot be in mysql"),
        ("sqlite://", "needs a file: sqlite:///study.db"),
        ("sqlite:////no/such/folder/x.db", "the folder /no/such/folder of .* does not exist"),
        ("sqlite:///x.db?synchronous=off", r"\?synchronous=full, and nothing else"),
    ],
)
def test_invalid_urls_are_explained(wrong: str, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        SqlStore(wrong, "rates")


def test_an_unreachable_server_is_reported_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match=r"me:\*\*\*@.* cannot be used: .*No such file") as raised:
        SqlStore(f"postgresql://me:secret@/x?host={tmp_path}", "rates")
    assert "secret" not in str(raised.value)


def test_synchronous_full_is_passed_to_sqlite(tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path / 'x.db'}?synchronous=full")
    with store.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_databases_conform_to_the_protocol_of_stores(url: str) -> None:
    numbers = count()
    check_store(lambda: SqlStore(url, f"study {next(numbers)}"), pass_time=time.sleep)
