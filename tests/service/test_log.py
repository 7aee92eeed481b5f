from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from onlineauto.errors import InputError
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.log import segment_log
from onlineauto.service.log.erase import erase
from onlineauto.service.log.segment_log import GroupCommit, SegmentLog, is_whole, read_record, sealed
from tests.service.traffic import CONFIGURATION, decision, records
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("quick")

LINES = list(records(50))


def filled(folder: Path, *, segment_bytes: int = 4000) -> SegmentLog:
    log = SegmentLog(folder, segment_bytes=segment_bytes)
    for line in LINES:
        log.append([line])
    log.sync()
    return log


def test_positions_and_lines_survive_segments_and_reopening(tmp_path: Path) -> None:
    log = filled(tmp_path)
    found = list(log.lines(0))
    log.close()
    again = SegmentLog(tmp_path)
    assert [line for _, line in found] == LINES
    assert len(list(tmp_path.iterdir())) > 3
    assert list(again.lines(0)) == found
    assert all(again.line_at(position, len(line)) == line for position, line in found)
    assert list(again.lines(found[7][0])) == found[7:]


@pytest.mark.parametrize("cut", [1, 5, 100, 199])
def test_only_a_torn_tail_is_cut(tmp_path: Path, cut: int) -> None:
    filled(tmp_path, segment_bytes=1 << 20).close()
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    log = SegmentLog(tmp_path)
    kept = [line for _, line in log.lines(0)]
    assert kept == LINES[: len(kept)]
    assert log.torn == len(data) - cut - sum(map(len, kept))
    log.append([LINES[0]])
    log.sync()
    assert [line for _, line in log.lines(0)] == [*kept, LINES[0]]


def test_zeros_behind_the_end_are_a_torn_tail(tmp_path: Path) -> None:
    filled(tmp_path, segment_bytes=1 << 20).close()
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(bytes(5000))
    log = SegmentLog(tmp_path)
    assert [line for _, line in log.lines(0)] == LINES
    assert log.torn == 5000


def test_damage_before_good_records_is_refused(tmp_path: Path) -> None:
    filled(tmp_path, segment_bytes=1 << 20).close()
    (path,) = tmp_path.iterdir()
    data = bytearray(path.read_bytes())
    data[300] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a torn tail"):
        SegmentLog(tmp_path)


def test_a_missing_segment_is_refused(tmp_path: Path) -> None:
    filled(tmp_path).close()
    sorted(tmp_path.iterdir())[1].unlink()
    with pytest.raises(InputError, match="bytes are missing"):
        SegmentLog(tmp_path)


def test_old_segments_are_removed_whole(tmp_path: Path) -> None:
    log = filled(tmp_path)
    middle = list(log.lines(0))[25][0]
    old = log.old_segments(middle)
    assert old > 0
    assert log.old_segments(middle, written_before=0.0) == 0
    log.remove_first(old)
    assert 0 < log.begin <= middle
    assert list(log.lines(middle))
    with pytest.raises(InputError, match="has the positions"):
        list(log.lines(0))
    assert SegmentLog(tmp_path).begin == log.begin


def test_any_changed_byte_is_noticed() -> None:
    line = decision("e", 0.0)
    for place in range(len(line)):
        damaged = line[:place] + bytes([line[place] ^ 4]) + line[place + 1 :]
        assert not is_whole(damaged)
    with pytest.raises(InputError, match="checksum"):
        read_record(line[:-3] + b"\n")
    with pytest.raises(InputError, match="not a record"):
        read_record(sealed(b'{"Type":"other"}'))


def test_groups_keep_their_order_and_call_every_callback(tmp_path: Path) -> None:
    log = SegmentLog(tmp_path)
    commit = GroupCommit(log)
    durable: list[tuple[int, int]] = []
    lock = threading.Lock()

    def submit(part: list[bytes]) -> None:
        for line in part:
            answered = threading.Event()
            places: list[int] = []

            def done(error: Exception | None) -> None:
                assert error is None
                answered.set()  # noqa: B023 - called before the next round

            places.append(commit.submit(line, done))
            assert answered.wait(PATIENCE)
            with lock:
                durable.append((places[0], log.durable))

    threads = [threading.Thread(target=submit, args=(LINES[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    commit.close()
    assert sorted(line for _, line in log.lines(0)) == sorted(LINES)
    assert all(position < end for position, end in durable)
    assert {position for position, _ in durable} == {position for position, _ in log.lines(0)}
    with pytest.raises(InputError, match="no more records"):
        commit.submit(LINES[0], lambda _: None)


def test_a_full_disk_answers_with_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = SegmentLog(tmp_path)

    def full(lines: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "append", full)
    heard: list[Exception | None] = []
    commit = GroupCommit(log)
    commit.submit(LINES[0], heard.append)
    commit.close()
    assert isinstance(heard[0], OSError)
    assert commit.failed is heard[0]


@pytest.mark.parametrize("bound", [60.0, 0.002])
def test_the_submitting_thread_writes_while_the_disk_is_fast(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: float
) -> None:
    log, writers, written = SegmentLog(tmp_path), list[int](), threading.Semaphore(0)
    sync = log.sync

    def timed_sync() -> None:
        writers.append(threading.get_ident())
        time.sleep(0.05)
        sync()

    monkeypatch.setattr(log, "sync", timed_sync)
    commit = GroupCommit(log)
    monkeypatch.setattr(segment_log, "_FAST", bound)
    for line in LINES[:20]:
        with commit:
            commit.submit(line, lambda _: written.release())
        assert written.acquire(timeout=PATIENCE)
    commit.close()
    here = [writer == threading.get_ident() for writer in writers]
    assert here == [True] + 19 * [bound == 60.0]
    assert [line for _, line in log.lines(0)] == LINES[:20]


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), MemoryError("No space left")])
def test_a_group_that_its_submitter_cannot_write_is_written_later(
    problem: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, heard = SegmentLog(tmp_path), list[Exception | None]()

    def full() -> None:
        raise problem

    commit = GroupCommit(log)
    with monkeypatch.context() as changed:
        changed.setattr(log, "sync", full)
        with commit:
            places = [commit.submit(line, heard.append) for line in LINES[:2]]
        assert heard == [problem, problem]
        with pytest.raises(InputError, match="No space left"):
            commit.submit(LINES[2], heard.append)
    until(lambda: commit.failed is None)
    with commit:
        places.append(commit.submit(LINES[2], heard.append))
    commit.close()
    assert heard[2:] == [None]
    assert list(log.lines(0)) == list(zip(places, LINES[:3], strict=True))


def test_erased_events_have_no_features_and_the_rest_is_as_it_was(log: SegmentLog) -> None:
    before = list(log.lines(0))
    assert erase(log, ["e3", "e200"]) == ({"e3": 1, "e200": 1}, {})
    after = list(log.lines(0))
    assert [position for position, _ in before] == [position for position, _ in after]
    for (_, line), (_, bare) in zip(before, after, strict=True):
        if line == bare:
            continue
        old, new = read_record(line), read_record(bare)
        assert replace(old, context=new.context) == new
        assert old.event_id in ("e3", "e200")
        assert b"article" not in bare
        assert b"user" not in bare
        assert b'"_tag":"music"' in bare
    assert sum(line != bare for (_, line), (_, bare) in zip(before, after, strict=True)) == 2
    assert erase(log, ["nobody", "e3"]) == ({}, {"e3": 1})


def test_an_erasure_that_is_stopped_changes_nothing_and_is_done_again(
    log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = list(log.lines(0))
    written = [path.stat().st_mtime for path in sorted(log.folder.glob("*.dsjson"))]
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", stopped)
        with pytest.raises(OSError, match="stopped"):
            erase(log, ["e3"])
    assert list(SegmentLog(log.folder, read_only=True).lines(0)) == before
    assert erase(SegmentLog(log.folder, read_only=True), ["e3"]) == ({"e3": 1}, {})
    after = list(SegmentLog(log.folder, read_only=True).lines(0))
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    assert [path.stat().st_mtime for path in sorted(log.folder.glob("*.dsjson"))] == written
    assert not list(log.folder.glob("*.new"))


def stopped(_: int) -> None:
    raise OSError("stopped")


def test_a_log_with_erased_events_is_learnt(log: SegmentLog, tmp_path: Path) -> None:
    erase(log, [f"e{number}" for number in range(0, 400, 3)])
    (tmp_path / "loop").mkdir()
    learner = LogLearner(tmp_path / "loop", log, CONFIGURATION)
    while learner.step():
        pass
    assert (learner.learnt, learner.faulty) == (400, 0)
    learner.close(snapshot=False)


def test_lines_that_follow_one_another_are_read_at_once(
    log: SegmentLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, reads = list(log.lines(0)), list[int]()
    real = os.pread

    def counted(descriptor: int, size: int, position: int) -> bytes:
        reads.append(position)
        return real(descriptor, size, position)

    monkeypatch.setattr(os, "pread", counted)
    assert all(log.line_at(at, len(line)) == line for at, line in lines)
    assert len(reads) <= 1 + len(list(log.folder.iterdir()))
    for at, line in reversed(lines):
        assert log.line_at(at, len(line)) == line
    log.append([b'{"new":1}\n'])
    assert log.line_at(log.durable, 10) == b'{"new":1}\n'
