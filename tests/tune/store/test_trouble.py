"""Errors of stores and their messages: a full disk, a read-only file, missing locks, an incomplete copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from onlineauto.errors import OptionError, StoreError, UnreachableError
from onlineauto.tune import Float, Study, copy_study
from onlineauto.tune.store import MemoryStore
from tests.tune.studies import asked

SPACE = {"x": Float(0, 1)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1000k", "tmpfs", str(folder)]
    if os.geteuid() or shutil.which("mount") is None or subprocess.run(command, check=False).returncode:
        pytest.skip("no disk can be mounted")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_study_continues_when_disk_space_is_free_again(small_disk: Path) -> None:
    url = f"sqlite:///{small_disk}/s.db"
    study = Study(SPACE, "fifo", storage=url, max_trials=2000, max_resource=9)

    def tells(count: int) -> None:
        for _ in range(count):
            study.tell(asked(study), 0.5, {"note": "x" * 500})

    tells(20)
    ballast = small_disk / "ballast"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"0" * 4096)
    with pytest.raises(
        UnreachableError, match=r"disk is full; free space on this disk|disk I/O error; free space"
    ):
        tells(100)
    told = len(Study.load("study", storage=url).trials)
    assert told >= 20
    os.truncate(ballast, ballast.stat().st_size - 120_000)
    tries = 0
    while len(study.trials) < told + 20:  # as a run does, which tries again for minutes
        tries += 1
        assert tries < 30
        with suppress(UnreachableError):
            tells(1)
    assert tries < 25


def test_the_write_ahead_log_stays_small_if_disk_space_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onlineauto.tune.store.connection._SHORT", 1 << 60)
    study = Study(SPACE, "fifo", storage=f"sqlite:///{tmp_path}/s.db")
    for _ in range(100):
        job = asked(study)
        study.tell(job, 0.5, {"note": "x" * 4000})
    assert (tmp_path / "s.db-wal").stat().st_size < 600_000


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            sqlite3.SQLITE_READONLY,
            "copy the file, and FILE-wal if there is one, to a folder that you may write to",
        ),
        (sqlite3.SQLITE_BUSY, "network file systems, has no locks: then keep the file on a local disk"),
        (sqlite3.SQLITE_PROTOCOL, "does not lock files: keep the file on a local disk"),
        (sqlite3.SQLITE_IOERR_LOCK, "does not lock files, as some network file systems"),
        (sqlite3.SQLITE_CANTOPEN, "FILE-wal and FILE-shm beside the file"),
        (sqlite3.SQLITE_FULL, "free space on this disk"),
    ],
)
def test_errors_of_sqlite_say_what_to_do(code: int, message: str, tmp_path: Path) -> None:
    from sqlalchemy.exc import OperationalError

    from onlineauto.tune.store.connection import connect, translate_errors

    engine = connect(f"sqlite:///{tmp_path}/s.db")
    error = sqlite3.OperationalError("it does not work")
    error.sqlite_errorcode = code
    with pytest.raises(UnreachableError, match=message), translate_errors(engine):
        raise OperationalError("SELECT", {}, error)
    engine.dispose()


def test_a_copied_file_without_its_write_ahead_log_is_explained(tmp_path: Path) -> None:
    study = Study(SPACE, storage=f"sqlite:///{tmp_path}/s.db")
    assert study.ask() is not None
    shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
    with pytest.raises(OptionError, match="FILE-wal belongs to it"):
        Study.load("study", storage=f"sqlite:///{tmp_path}/copy.db")


def test_reading_a_study_creates_no_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/missing.db"
    with pytest.raises(OptionError, match=r"no study 'study' in .*: there is no file .*missing\.db"):
        Study.load("study", storage=url)
    with pytest.raises(OptionError, match="there is no file"):
        copy_study(from_study_name="study", from_storage=url, to_storage=MemoryStore())
    assert not [*tmp_path.iterdir()]


def test_a_worker_waits_for_a_server_that_starts_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from onlineauto.cli import worker
    from onlineauto.cli.main import main

    url = f"sqlite:///{tmp_path}/s.db"
    Study(SPACE, storage=url, name="study", max_trials=1).run(lambda config: config["x"])
    load, calls = Study.load, []

    def loads(name: str, **words: object) -> Study:
        calls.append(words.pop("storage"))
        if len(calls) < 3:
            raise UnreachableError("the database system is starting up")
        return load(name, storage=url)

    monkeypatch.setattr(Study, "load", loads)
    monkeypatch.setattr(worker, "_PATIENCE", 20)
    words = ["worker", "--study", "postgresql://me@nowhere/db", "--name", "study", "--trainable", "math:exp"]
    assert main([*words, "--quiet"]) == 0
    assert calls == ["postgresql://me@nowhere/db"] * 3


def taken_away(path: Path) -> None:
    path.unlink()


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


@pytest.mark.parametrize("change", [taken_away, replaced])
def test_a_file_that_is_removed_while_a_study_is_open_is_an_error(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    """Without the check, commits would be lost in a file that no path leads to."""
    path = tmp_path / "s.db"
    study = Study(SPACE, "fifo", storage=f"sqlite:///{path}", max_trials=9, max_resource=2)
    told: list[float] = []

    def trains(config: Any, resource: int, report: Any) -> None:
        told.append(config["x"])
        if len(told) == 3:
            change(path)
        while report.step < resource:
            report(config["x"])

    with pytest.raises(
        StoreError, match=rf"the file {path} was removed while its studies were open"
    ) as raised:
        study.run(trains)
    assert not isinstance(raised.value, UnreachableError)  # which is tried again for minutes
    assert len(told) == 3
    with pytest.raises(StoreError, match="was removed"):
        study.ask()
    assert path.exists() == (change is replaced)


def test_a_study_survives_a_change_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    study = Study(SPACE, "fifo", storage="sqlite:///s.db", max_trials=2, max_resource=1)

    def trains(config: Any) -> float:
        os.chdir(tmp_path / "elsewhere")
        return float(config["x"])

    study.run(trains)
    assert Study.load("study", storage=f"sqlite:///{tmp_path}/s.db").is_done
    assert not any((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("update onlineauto_study set version = 'abc'", "'abc' is not a number of records; restore"),
        ("update onlineauto_study set version = -5", "-5 is not a number of records"),
        ("update onlineauto_study set version = 2.5", "2.5 is not a number of records"),
        ("update onlineauto_study set version = 1000000000000", r"record \d of .* is missing"),
        ("update onlineauto_study set version = 3", r"record \d of .* is one too many"),
        ("drop table onlineauto_record", "is damaged, or not a store: no such table"),
    ],
)
def test_a_database_that_another_program_changed_is_rejected_by_name(
    change: str, message: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    Study(SPACE, "fifo", storage=url, max_trials=2).run(lambda config: config["x"])
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(StoreError, match=message):
        Study.load("study", storage=url)


def test_a_table_that_is_missing_ends_a_run_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = Study(SPACE, "fifo", storage=url, max_trials=2)
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute("drop table onlineauto_job")
    connection.close()
    with pytest.raises(StoreError, match="no such table: onlineauto_job") as refused:
        study.run(lambda config: config["x"])
    assert not isinstance(refused.value, UnreachableError)  # which a run tries again for minutes


def test_a_record_without_a_valid_number_is_missing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    Study(SPACE, "fifo", storage=url, max_trials=4).run(lambda config: config["x"])
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute("update onlineauto_record set version = x'ff' where version = 3")
    connection.close()
    with pytest.raises(StoreError, match=r"record 3 of .* is missing"):
        Study.load("study", storage=url)
