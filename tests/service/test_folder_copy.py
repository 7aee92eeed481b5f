"""Copies of a service's folder: what a lost disk takes, and which folders are whole or rejected."""

from __future__ import annotations

import io
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import httpx
import msgspec
import pytest

from onlineauto.cli.main import main
from onlineauto.errors import InputError
from onlineauto.service.http.status import ServiceMetrics, status_of
from onlineauto.service.learning.rounds import PlannedRounds
from onlineauto.service.log.log_copier import CopyStatus
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.folder import (
    FolderCopy,
    FolderIdentity,
    FolderLock,
    OtherLogError,
    check_whole,
    restore_folder,
)
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.loop.rank_server import RankServer
from tests.service.serving import MODEL, ROOT, Service
from tests.service.test_kill import OFTEN, Load
from tests.service.test_kill import check as check_kill
from tests.service.test_rank_server import Beside
from tests.service.traffic import CONFIGURATION, rank_request
from tests.waiting import until


def opened(folder: Path, **options: Any) -> Loop:
    options = {"settings": {"learn_at": "reward"}, **options}
    return Loop(folder, CONFIGURATION, every=Every(publish=0.0, snapshot=1e9), segment_bytes=4000, **options)


def fill(loop: Loop, count: int, *, name: str = "e") -> None:
    """Rank and reward, learn, and write a snapshot."""
    for number in range(count):
        loop.rank(rank_request(f"{name}{number}", "tom"), ignore_completion)
        loop.reward(f"{name}{number}", float(number % 2), ignore_completion)
        if number % 5 == 4:
            until(lambda: loop.log.durable == loop._commit.position)
    while loop.learn():
        pass
    loop.learner.snapshot()


def step(copy: FolderCopy) -> None:
    """Copy what is new, with the snapshot, which would wait for a multiple of the time that it took."""
    copy._snapshot_at = 0.0
    copy.step()


def answers(loop: Loop) -> list[Any]:
    """Return the decisions for some events that are not in the log."""
    asked = [rank_request(f"new-{user}{number}", user) for number in range(10) for user in ("tom", "ann")]
    return [loop.rank(each, ignore_completion).probabilities for each in asked]


def model_of(loop: Loop) -> bytes:
    while loop.learn():
        pass
    file = io.BytesIO()
    loop.learner.workspace.save(file)
    return file.getvalue()


@pytest.fixture
def loop(tmp_path: Path) -> Iterator[Loop]:
    made = opened(tmp_path / "loop")
    fill(made, 60)
    yield made
    made.close()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "disk2").mkdir()
    return tmp_path / "disk2"


def test_a_restored_copy_has_the_same_log_model_and_decisions(
    loop: Loop, target: Path, tmp_path: Path
) -> None:
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    fill(loop, 40, name="more")
    loop.keep_model()
    step(copy)
    assert (copy.status().behind_bytes, copy.status().lag_seconds) == (0, 0.0)
    copy.close()
    restored = restore_folder(target, tmp_path / "again")
    assert (restored.end, restored.torn, restored.gaps, restored.damaged) == (loop.log.end, 0, [], [])
    again = opened(tmp_path / "again")
    assert again.learner.learnt == 100  # by the snapshot, before a record is read
    assert [each.name for each in again.learner.models.all()] == [
        each.name for each in loop.learner.models.all()
    ]
    assert again.learner.skipped == 0
    assert model_of(again) == model_of(loop)
    assert answers(again) == answers(loop)
    again.close()
    (tmp_path / "again/snapshot.oam").unlink()
    from_log = opened(tmp_path / "again")
    assert model_of(from_log) == model_of(loop)
    from_log.close()


def test_a_snapshot_written_during_a_copy_is_not_ahead_of_the_copied_log(
    loop: Loop, target: Path, tmp_path: Path
) -> None:
    class Interrupted(FolderCopy):
        def _copy_snapshot(self, copy: SegmentLog) -> None:
            fill(loop, 10, name="meanwhile")
            super()._copy_snapshot(copy)

    copy = Interrupted(loop.folder, loop.log, target)
    step(copy)
    copy.close()
    restore_folder(target, tmp_path / "again")
    again = opened(tmp_path / "again")
    assert (again.learner.learnt, again.learner.position) == (70, loop.log.end)
    again.close()


def test_a_backup_while_the_service_runs(
    loop: Loop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("first", "second"):  # the second backup copies what is new
        assert main(["loop", str(loop.folder), "--backup", str(tmp_path / "backup")]) == 0
        fill(loop, 20, name=name)
    end = SegmentLog(tmp_path / "backup/log", read_only=True).end
    assert f"has the log up to position {end}" in capsys.readouterr().out
    assert end < loop.log.end
    assert main(["loop", str(tmp_path / "again"), "--restore", str(tmp_path / "backup")]) == 0
    assert f"the log has the positions 0 to {end}; its last record: 20" in capsys.readouterr().out
    again = opened(tmp_path / "again")
    assert (again.learner.learnt, again.learner.skipped) == (80, 0)
    again.close()
    for folder in (loop.folder, tmp_path / "again"):  # a log is not overwritten
        assert main(["loop", str(folder), "--restore", str(tmp_path / "backup")]) == 1
    assert "which is not overwritten: restore into an empty folder" in capsys.readouterr().err


def test_a_torn_segment_of_the_copy_is_cut_and_continued(loop: Loop, target: Path, tmp_path: Path) -> None:
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    copy.close()
    with max((target / "log").glob("*.dsjson")).open("ab") as file:
        file.write(b'{"Type":"rank","EventId":"half')
    restored = restore_folder(target, tmp_path / "again")
    assert (restored.torn, restored.end, restored.damaged) == (30, loop.log.end, [])
    fill(loop, 5, name="more")
    step(copy)
    assert copy.position == loop.log.end
    assert list(SegmentLog(target / "log", read_only=True).lines(0)) == list(loop.log.lines(0))
    copy.close()


def test_flipped_bytes_and_lost_segments_of_the_copy_are_reported_with_their_range(
    loop: Loop, target: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    copy.close()
    (target / "snapshot.oam").unlink()
    records = [(at, line) for at, line in loop.log.lines(0) if line.startswith(b'{"Type":"rank"')]
    (first, line), (second, following) = records[3], records[4]
    segments = sorted((target / "log").glob("*.dsjson"))
    for position in (first + 20, second + len(following) // 2):
        path = next(segment for segment in reversed(segments) if int(segment.stem) <= position)
        content = bytearray(path.read_bytes())
        content[position - int(path.stem)] ^= 1
        path.write_bytes(content)
    lost = segments[2]
    gap = (int(lost.stem), int(lost.stem) + lost.stat().st_size)
    lost.unlink()
    assert main(["loop", str(tmp_path / "again"), "--restore", str(target)]) == 0
    told = capsys.readouterr().out
    for what, (begin, end) in (
        ("missing", gap),
        ("damaged", (first, first + len(line))),
        ("damaged", (second, second + len(following))),
    ):
        assert f"the positions {begin} to {end} of the log are {what}: {end - begin} bytes" in told
    again = opened(tmp_path / "again")
    while again.learn():
        pass
    assert again.learner.skipped >= 3
    assert 0 < again.learner.learnt < 58
    again.close()


def test_a_second_disk_that_is_away_never_stops_the_service(loop: Loop, tmp_path: Path) -> None:
    target = tmp_path / "disk2"
    metrics = ServiceMetrics(partial(status_of, loop))

    def state() -> CopyStatus:
        return status_of(loop).copies[0]

    with FolderCopy(loop.folder, loop.log, target) as copy:
        loop.copies = [copy]  # the disk is away from the start
        until(lambda: state().failures > 0)
        assert "does not exist" in state().error
        assert state().behind_bytes == loop.log.durable
        assert state().lag_seconds > 0
        target.mkdir()
        until(lambda: state().behind_bytes == 0 and not state().error)
        assert state().lag_seconds == 0
        target.rename(tmp_path / "away")
        fill(loop, 20, name="gone")
        until(lambda: state().error)
        assert (loop.trouble, loop.writable, loop.learner.learnt) == ("", True, 80)
        assert not target.exists()
        target.mkdir()  # another disk
        until(lambda: state().behind_bytes == 0 and not state().error)
        failures, text = state().failures, metrics.text().decode()
        assert failures >= 2
        assert f'onlineauto_copy_failures_total{{target="{target}"}} {float(failures)}' in text
        assert f'onlineauto_copy_behind_bytes{{target="{target}"}} 0.0' in text
        assert f'onlineauto_copy_lag_seconds{{target="{target}"}} 0.0' in text
    assert list(SegmentLog(target / "log", read_only=True).lines(0)) == list(loop.log.lines(0))


def test_a_full_second_disk_resumes_once_there_is_room(loop: Loop, target: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(target)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        (loop.folder / "snapshot.oam").unlink()  # which is larger than this disk
        copy = FolderCopy(loop.folder, loop.log, target)
        step(copy)
        filling = target / "filling"
        subprocess.run(["dd", "if=/dev/zero", f"of={filling}", "bs=4k"], check=False, capture_output=True)
        fill(loop, 100, name="more")
        (loop.folder / "snapshot.oam").unlink()
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                step(copy)
            assert copy.position < loop.log.end
        filling.unlink()
        step(copy)
        assert list(SegmentLog(target / "log", read_only=True).lines(0)) == list(loop.log.lines(0))
        copy.close()
    finally:
        subprocess.run(["umount", "-l", str(target)], check=True)


def test_a_copy_of_another_log_is_not_overwritten(loop: Loop, target: Path, tmp_path: Path) -> None:
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    copy.close()
    empty = opened(tmp_path / "empty")
    with (
        pytest.raises(OtherLogError, match="restore the folder from it"),
        FolderCopy(empty.folder, empty.log, target),
    ):
        pass
    fill(empty, 80)
    with (
        pytest.raises(OtherLogError, match="copy of another service"),
        FolderCopy(empty.folder, empty.log, target),
    ):
        pass
    empty.close()
    assert SegmentLog(target / "log", read_only=True).end == loop.log.end


@pytest.mark.parametrize("kind", ["same", "inside", "link"])
def test_a_folder_is_not_copied_into_itself(loop: Loop, tmp_path: Path, kind: str) -> None:
    (loop.folder / "inside").mkdir()
    (tmp_path / "link").symlink_to(loop.folder)
    target = {"same": loop.folder, "inside": loop.folder / "inside", "link": tmp_path / "link"}[kind]
    with (
        pytest.raises(OtherLogError, match="is within the folder"),
        FolderCopy(loop.folder, loop.log, target),
    ):
        pass


def test_a_copy_follows_the_removal_of_old_segments(loop: Loop, target: Path, tmp_path: Path) -> None:
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    loop.log.remove_first(3)
    fill(loop, 5, name="more")
    step(copy)
    begin = SegmentLog(target / "log", read_only=True).begin
    assert 0 < begin <= loop.log.begin
    copy.close()
    fill(loop, 40, name="away")
    loop.log.remove_first(loop.log.old_segments(loop.log.end))  # beyond the end of the copy
    assert loop.log.begin > copy.position
    step(copy)
    copy.close()
    restored = restore_folder(target, tmp_path / "again")
    assert (restored.begin, restored.end, restored.gaps) == (loop.log.begin, loop.log.end, [])
    again = opened(tmp_path / "again")
    assert model_of(again) == model_of(loop)
    again.close()


@pytest.mark.ci
def test_a_killed_service_whose_disk_is_lost_continues_from_its_copy(tmp_path: Path, target: Path) -> None:
    folder, ranked, rewarded = tmp_path / "loop", dict[str, list[Any]](), set[str]()
    for number in range(3):
        service = Service(folder, *OFTEN, "--ship", str(target)).start()
        load = Load(service.url, seed=number)
        try:
            service.wait()
            load.start()
            until(lambda: len(load.rewarded) > 30)  # noqa: B023 - called before the next round
            (state,) = httpx.get(f"{service.url}/v1/status", timeout=30).json()["copies"]
        finally:
            service.kill()
            load.join()
        assert (state["failures"], state["error"]) == (0, "")
        lost = {event for event, at in positions(folder).items() if at >= state["position"]}
        ranked |= {event: answer for event, answer in load.ranked.items() if event not in lost}
        shutil.rmtree(folder)
        restored = restore_folder(target, folder)
        assert restored.end >= state["position"]
        assert (restored.gaps, restored.damaged) == ([], [])
        assert ranked.keys() <= positions(folder).keys()
    check_kill(folder, ranked, rewarded)


def positions(folder: Path) -> dict[str, int]:
    """Return the position of each decision in the log of a folder."""
    records = [(at, read_record(line)) for at, line in SegmentLog(folder / "log", read_only=True).lines(0)]
    return {record.event_id: at for at, record in records if record.kind == "rank"}


def tree(folder: Path) -> dict[str, bytes]:
    """Return the content of each file in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def lines_of(folder: Path) -> dict[int, bytes]:
    return dict(SegmentLog(folder / "log", read_only=True, keep_damaged=True).lines(begin_of(folder)))


def begin_of(folder: Path) -> int:
    return min(int(path.stem) for path in (folder / "log").glob("*.dsjson"))


def interrupted(folder: Path) -> None:
    """Mark a folder as one whose copy or restore has not finished."""
    identity = FolderIdentity.read(folder)
    assert identity is not None
    msgspec.structs.replace(identity, whole=False).write(folder)


def back_up(loop: Loop, target: Path) -> None:
    target.mkdir(exist_ok=True)
    with FolderCopy(loop.folder, loop.log, target):
        pass


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Loop]:
    made = opened(tmp_path / "other")
    fill(made, 40, name="other")
    yield made
    made.close()


# -- whose folder it is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["log/x", "snapshot.oam", "models/x.oam", "tokens", "rounds", "journals/x"])
def test_files_of_an_unknown_service_are_not_overwritten(loop: Loop, tmp_path: Path, name: str) -> None:
    target = tmp_path / "disk2"
    (target / name).parent.mkdir(parents=True)
    (target / name).write_text("of somebody")
    before = tree(target)
    with pytest.raises(OtherLogError, match=r"no identity\.json that says whose copy it is"):
        back_up(loop, target)
    with pytest.raises(InputError, match="which is not overwritten"):
        restore_folder(loop.folder, target)
    assert main(["loop", str(loop.folder), "--backup", str(target)]) == 1
    assert tree(target) == before


@pytest.mark.parametrize("kind", ["overlaps", "ends earlier", "begins later", "is empty"])
def test_the_copy_of_another_service_is_not_changed(
    loop: Loop, other: Loop, tmp_path: Path, kind: str
) -> None:
    if kind == "begins later":
        other.log.remove_first(other.log.old_segments(other.log.end))
    elif kind == "is empty":
        other = opened(tmp_path / "empty")
    back_up(other, tmp_path / "disk2")
    if kind == "ends earlier":
        fill(loop, 60, name="more")
        loop.log.remove_first(loop.log.old_segments(loop.log.end))
        assert loop.log.begin > other.log.end
    before = tree(tmp_path / "disk2")
    for _ in range(2):
        with pytest.raises(OtherLogError, match="copy of another service than that of"):
            back_up(loop, tmp_path / "disk2")
    assert tree(tmp_path / "disk2") == before


def test_the_folder_of_a_service_is_not_a_target(loop: Loop, other: Loop, tmp_path: Path) -> None:
    shutil.copytree(loop.folder, tmp_path / "same")  # it has the identity of the service
    for target in (other.folder, tmp_path / "same"):
        before = tree(target)
        with pytest.raises(OtherLogError, match="is the folder of a service, and not a copy"):
            back_up(loop, target)
        with pytest.raises(InputError, match="which is not overwritten"):
            restore_folder(loop.folder, target)
        assert tree(target) == before


def test_foreign_files_beside_a_copy_are_left_alone(loop: Loop, tmp_path: Path) -> None:
    target = tmp_path / "disk2"
    foreign = {"notes.txt": b"mine", "lost+found/x": b"lost", "models/mine.oam": b"", "log/notes.dsjson": b""}
    for name in ("notes.txt", "lost+found/x"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(foreign[name])
    back_up(loop, target)
    for name in ("models/mine.oam", "log/notes.dsjson"):
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_bytes(foreign[name])
    kept = loop.keep_model()
    back_up(loop, target)
    assert (target / f"models/{kept}.oam").exists()
    (loop.folder / f"models/{kept}.oam").unlink()
    fill(loop, 60, name="more")
    loop.log.remove_first(loop.log.old_segments(loop.log.end))  # the copy begins again
    back_up(loop, target)
    assert not (target / f"models/{kept}.oam").exists()
    assert foreign.items() <= tree(target).items()


def test_a_disk_of_another_service_that_is_mounted_in_place_of_the_copy_is_not_changed(
    loop: Loop, other: Loop, tmp_path: Path
) -> None:
    target = tmp_path / "disk2"
    target.mkdir()
    copy = FolderCopy(loop.folder, loop.log, target)
    step(copy)
    back_up(other, tmp_path / "disk3")
    target.rename(tmp_path / "away")
    (tmp_path / "disk3").rename(target)
    before = tree(target)
    fill(loop, 5, name="more")
    with pytest.raises(OtherLogError, match="copy of another service"):
        step(copy)
    assert tree(target) == before
    copy.close()


def test_a_restored_service_continues_its_copy_and_the_original_does_not(loop: Loop, tmp_path: Path) -> None:
    target = tmp_path / "disk2"
    back_up(loop, target)
    restore_folder(target, tmp_path / "again")
    back_up(loop, target)  # a restore alone takes nothing over
    again = opened(tmp_path / "again")
    fill(again, 5, name="again")
    back_up(again, target)
    assert lines_of(target) == lines_of(again.folder)
    fill(loop, 60, name="more")
    before = tree(target)
    with pytest.raises(OtherLogError, match="copy of another service"):
        back_up(loop, target)
    loop.log.remove_first(loop.log.old_segments(loop.log.end))
    with pytest.raises(OtherLogError, match="copy of another service"):
        back_up(loop, target)
    assert tree(target) == before
    again.close()


def test_a_restored_service_does_not_begin_the_copy_of_the_original_again(loop: Loop, tmp_path: Path) -> None:
    target = tmp_path / "disk2"
    back_up(loop, target)
    restore_folder(target, tmp_path / "again")
    fill(loop, 5, name="more")
    back_up(loop, target)
    again = opened(tmp_path / "again")
    fill(again, 60, name="again")
    before = tree(target)
    for cut in (False, True):
        if cut:
            again.log.remove_first(again.log.old_segments(again.log.end))
        with pytest.raises(OtherLogError, match="copy of another log"):
            back_up(again, target)
    assert tree(target) == before
    again.close()


# -- whether it is whole --------------------------------------------------------------------------------


def test_an_incomplete_folder_is_rejected_by_every_command(
    loop: Loop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, half = tmp_path / "disk2", tmp_path / "half"
    back_up(loop, copy)
    restore_folder(copy, half)
    for folder, again in ((copy, "let --ship or --backup finish"), (half, "run the restore again")):
        interrupted(folder)
        before = tree(folder)
        for words in (
            ["serve", str(folder), *MODEL],
            ["serve", str(folder), "--follow", "http://127.0.0.1:9"],
            ["loop", str(folder)],
            ["loop", str(folder), "--export", "-"],
            ["loop", str(folder), "--event", "e1"],
            ["loop", str(folder), "--erase", "e1"],
            ["loop", str(folder), "--backup", str(tmp_path / "more")],
            ["loop", str(tmp_path / "new"), "--restore", str(folder)],
        ):
            assert main(words) == 1
            assert f"{folder} is not whole: " in (told := capsys.readouterr().err)
            assert again in told
        assert tree(folder) == before
        assert not (tmp_path / "new").exists()
    assert main(["loop", str(half), "--restore", str(tmp_path / "disk2")]) == 1  # the source is not whole
    for folder in (copy, half):
        assert main(["loop", str(folder), "--fill_gaps"]) == 0
        assert "was not whole: what it has is used from now on" in capsys.readouterr().out
        assert main(["loop", str(folder)]) == 0
    opened(half).close()


def test_a_copy_is_not_served(loop: Loop, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    back_up(loop, tmp_path / "disk2")
    before = tree(tmp_path / "disk2")
    assert main(["serve", str(tmp_path / "disk2"), *MODEL]) == 1
    assert "is the copy of a service, and stays as it is. Restore it" in capsys.readouterr().err
    assert main(["loop", str(tmp_path / "disk2")]) == 0  # it can be checked in place
    assert tree(tmp_path / "disk2") == before


def test_a_copy_in_use_is_an_error_that_names_it(loop: Loop, tmp_path: Path) -> None:
    copy = tmp_path / "disk2"
    back_up(loop, copy)
    lock = FolderLock(copy)
    with pytest.raises(InputError, match=f"another service writes the copy {copy}; each needs its own"):
        FolderCopy(loop.folder, loop.log, copy).step()
    lock.release()


def test_an_unreadable_identity_is_rejected(loop: Loop, tmp_path: Path) -> None:
    back_up(loop, tmp_path / "disk2")
    for content in (b"", b"{}", b'{"ids":["a"],"format":2}', b'{"ids":[]}'):
        (tmp_path / "disk2/identity.json").write_bytes(content)
        before = tree(tmp_path / "disk2")
        with pytest.raises(OtherLogError, match=r"identity\.json"):
            back_up(loop, tmp_path / "disk2")
        with pytest.raises(InputError, match=r"identity\.json"):
            restore_folder(tmp_path / "disk2", tmp_path / "again")
        assert tree(tmp_path / "disk2") == before


def test_a_service_without_identity_is_given_one(tmp_path: Path) -> None:
    loop = opened(tmp_path / "loop")
    loop.close()
    first = FolderIdentity.read(loop.folder)
    (loop.folder / "identity.json").unlink()
    with pytest.raises(InputError, match="start its service once"):
        FolderCopy(loop.folder, loop.log, tmp_path).step()
    opened(loop.folder).close()
    second = FolderIdentity.read(loop.folder)
    assert first is not None
    assert second is not None
    assert second.whole
    assert first.ids != second.ids
    opened(loop.folder).close()
    assert FolderIdentity.read(loop.folder) == second


def test_an_interrupted_restore_is_repeated_by_the_same_command(
    loop: Loop, other: Loop, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / "notes.txt").write_text("mine")
    fill(other, 100, name="more")
    other.keep_model()
    restore_folder(other.folder, new)  # of which nothing is left
    interrupted(new)
    assert main(["loop", str(new), "--restore", str(loop.folder)]) == 0
    assert check_whole(new) is not None
    assert lines_of(new) == lines_of(loop.folder)
    assert not list((new / "models").iterdir())
    assert (new / "notes.txt").read_text() == "mine"
    again = opened(new)
    assert model_of(again) == model_of(loop)
    again.close()


def test_a_source_whose_log_loses_its_beginning_during_a_restore_is_reported(
    loop: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy2 = shutil.copy2

    def copied(source: Path, target: Path) -> None:
        copy2(source, target)
        if source.name == "snapshot.oam" and not loop.log.begin:
            loop.log.remove_first(2)

    monkeypatch.setattr("onlineauto.service.loop.folder.shutil.copy2", copied)
    with pytest.raises(InputError, match="run the restore again"):
        restore_folder(loop.folder, tmp_path / "new")
    restore_folder(loop.folder, tmp_path / "new")


def test_a_copy_that_has_lost_segments_is_completed(loop: Loop, tmp_path: Path) -> None:
    target = tmp_path / "disk2"
    for lost in (slice(0, 2), slice(-2, None), slice(None)):
        back_up(loop, target)
        for path in sorted((target / "log").glob("*.dsjson"))[lost]:
            path.unlink()
        back_up(loop, target)
        assert lines_of(target) == lines_of(loop.folder)
        assert check_whole(target) is not None


def test_a_backup_of_a_rank_server_has_its_name_and_model(loop: Loop, tmp_path: Path) -> None:
    follower = RankServer(tmp_path / "rank", Beside(loop))
    while follower.follow():
        pass
    follower.close()
    source = follower.source
    assert main(["loop", str(tmp_path / "rank"), "--backup", str(tmp_path / "disk2")]) == 0
    assert main(["loop", str(tmp_path / "again"), "--restore", str(tmp_path / "disk2")]) == 0
    assert (tmp_path / "again/model").read_bytes() == (tmp_path / "rank/model").read_bytes()
    again = RankServer(tmp_path / "again", Beside(loop))
    assert again.source == source  # the learner has none of its records twice
    again.close()


# -- planned parts --------------------------------------------------------------------------------------


class Nobody:
    alone, plans = 0, False

    def close(self) -> None:
        pass


@pytest.mark.parametrize("begins", [True, False])
def test_a_copied_log_that_ends_before_the_snapshot_is_learnt_again_or_rejected(
    begins: bool, loop: Loop, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not begins:
        loop.log.remove_first(loop.log.old_segments(loop.log.end) - 1)
    copy, new = tmp_path / "disk2", tmp_path / "new"
    back_up(loop, copy)
    last = max((copy / "log").glob("*.dsjson"))
    lines = last.read_bytes().splitlines(keepends=True)
    last.write_bytes(b"".join(lines[:-1]) + lines[-1][:9])
    assert main(["loop", str(new), "--restore", str(copy)]) == (0 if begins else 1)
    said = capsys.readouterr()
    if not begins:
        assert f"and the snapshot continues at {loop.log.end}: restore from another copy" in said.err
        with pytest.raises(InputError, match="not whole"):
            check_whole(new)
        return
    assert f"the snapshot continued at {loop.log.end}, behind the end" in said.out
    with closing(opened(new)) as restored:
        while restored.learn():
            pass
        assert restored.learner.position == restored.log.end


def test_parts_behind_the_end_of_the_log_are_dropped(loop: Loop, tmp_path: Path) -> None:
    end = loop.log.end
    kept = b"0 100\n200 %d\n" % end
    for behind in (
        b"%d %d\n" % (end, end + 1),
        b"%d %d\n%d %d\n" % (end + 5, end + 6, end + 6, end + 9),
        b"",
    ):
        (loop.folder / "rounds").write_bytes(kept + behind)
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        restore_folder(loop.folder, tmp_path / "new")
        assert (tmp_path / "new/rounds").read_bytes() == kept
        rounds = PlannedRounds(loop.folder / "rounds", loop.log, Nobody())  # type: ignore[arg-type]
        assert rounds.part_at(150, 0) == (200, False)
        assert rounds.part_at(200, 0) == (end, True)
        assert not rounds.part_at(end, 0).together
        assert (loop.folder / "rounds").read_bytes() == kept  # so it stays dropped once the log is longer
    (loop.folder / "rounds").write_bytes(b"200 %d\n" % (end + 1))
    assert not PlannedRounds(loop.folder / "rounds", loop.log, Nobody()).part_at(250, 0).together  # type: ignore[arg-type]


# -- killed, and on a full disk -------------------------------------------------------------------------

CHILD = """
import os, resource, signal, sys, time
from pathlib import Path
from onlineauto.errors import OnlineautoError
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.folder import FolderCopy, restore_folder
how, source, target, number, rest = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), *map(int, sys.argv[4:])
seen = 0
def hook(event, words):
    global seen
    if event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.truncate"):
        return
    if not os.fspath(words[0] if isinstance(words[0], (str, Path)) else "").startswith(str(target)):
        return
    seen += 1
    if seen == number and how.endswith("killed"):
        signal.setitimer(signal.ITIMER_REAL, max(rest, 1) * 1e-6)  # the alarm ends the process
    elif seen == number:
        resource.setrlimit(resource.RLIMIT_FSIZE, (rest, rest))  # no file can be larger from here on
sys.addaudithook(hook)
try:
    if how.startswith("restore"):
        restore_folder(source, target)
    elif how.startswith("backup"):
        copy = FolderCopy(source, SegmentLog(source / "log", read_only=True, keep_damaged=True), target)
        copy.step()
        copy.close()
    else:
        log = SegmentLog(source / "log", segment_bytes=4000, keep_damaged=True)
        lines = [line for _, line in log.lines(log.begin)][-5:]
        with FolderCopy(source, log, target):
            for _ in range(10):
                log.append(lines)
                log.sync()
                time.sleep(0.02)
        log.close()
except (OnlineautoError, OSError) as error:
    print(error)
print("seen", seen)
"""


def child(how: str, source: Path, target: Path, number: int, rest: int) -> tuple[int, str]:
    """Copy in a process that is killed, or whose disk is full, after a number of changes of the target."""
    words = [sys.executable, "-c", CHILD, how, str(source), str(target), str(number), str(rest)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def stages(loop: Loop, tmp_path: Path) -> list[Path]:
    """Return folders of the copy: new, older than the log, and one that ends before the log begins."""
    folders = [tmp_path / name for name in ("new", "older", "far")]
    for folder in folders:
        folder.mkdir()
        (folder / "notes.txt").write_text("mine")
    back_up(loop, folders[2])
    fill(loop, 60, name="second")
    loop.log.remove_first(loop.log.old_segments(loop.log.end))
    back_up(loop, folders[1])
    loop.keep_model()
    fill(loop, 60, name="third")
    return folders


def check_interrupted(how: str, source: Path, target: Path, scratch: Path) -> bool:
    """Check that a target is whole or is rejected, and that a repetition completes it; return the former."""
    assert (target / "notes.txt").read_text() == "mine"
    shutil.rmtree(scratch, ignore_errors=True)
    identity = FolderIdentity.read(target)
    is_whole = identity is not None and identity.whole
    served = target
    if how.startswith("restore"):
        if not is_whole and identity is not None:
            with pytest.raises(InputError, match="a restore to it has not finished"):
                opened(target)
    elif is_whole:
        restored = restore_folder(target, scratch)
        assert (restored.gaps, restored.damaged) == ([], [])
        served = scratch
    else:
        with pytest.raises(InputError, match=r"copy of a service to it has not finished|has no log"):
            restore_folder(target, scratch)
    if is_whole:
        loop = opened(served)
        known = lines_of(source)
        shared = {at: line for at, line in lines_of(served).items() if at in known}
        assert shared.items() <= known.items()
        assert shared == known or not how.startswith("restore")
        assert loop.learner.skipped == 0
        loop.close()
    if not how.startswith("restore") or not is_whole:
        status, told = child(how, source, target, 0, 0)
        assert (status, told.startswith("seen")) == (0, True), told
        assert lines_of(target).items() >= lines_of(source).items()
        assert check_whole(target) is not None
    assert (target / "notes.txt").read_text() == "mine"
    return is_whole


def interrupt(how: str, loop: Loop, tmp_path: Path, count: int) -> dict[bool, int]:
    """Interrupt copies at random instants; return how many targets were whole, and how many rejected."""
    draw, found = Random(how), {False: 0, True: 0}
    folders = stages(loop, tmp_path)
    if how.startswith("restore"):
        folders = folders[:1]
    loop.learner.snapshot()
    loop.log.sync()
    before = tree(loop.folder)
    most: dict[Path, int] = {}
    for number in range(count):
        stage = folders[number % len(folders)]
        target, source = tmp_path / "target", tmp_path / "source"
        for each in (target, source):
            shutil.rmtree(each, ignore_errors=True)
        shutil.copytree(loop.folder, source)
        if stage not in most:
            shutil.copytree(stage, target)
            status, told = child(how, source, target, 0, 0)
            assert status == 0, told
            most[stage] = int(told.split()[-1])
            for each in (target, source):
                shutil.rmtree(each)
            shutil.copytree(loop.folder, source)
        shutil.copytree(stage, target)
        rest = draw.randrange(3000) if how.endswith("killed") else draw.randrange(4096)
        status, told = child(how, source, target, draw.randrange(1, most[stage] + 1), rest)
        if how.endswith("full"):
            assert status == 0, told
        found[check_interrupted(how, source, target, tmp_path / "scratch")] += 1
        if not how.startswith("ship"):
            assert tree(source) == before
    return found


@pytest.mark.ci
@pytest.mark.parametrize("how", ["restore killed", "backup killed", "ship killed"])
def test_a_killed_copy_is_whole_or_rejected_and_can_be_repeated(how: str, loop: Loop, tmp_path: Path) -> None:
    interrupt(how, loop, tmp_path, 6)


@pytest.mark.ci
@pytest.mark.parametrize("how", ["restore full", "backup full", "ship full"])
def test_a_copy_on_a_full_disk_is_whole_or_rejected(how: str, loop: Loop, tmp_path: Path) -> None:
    interrupt(how, loop, tmp_path, 3)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["restore", "backup", "ship"])
def test_copies_that_are_killed_forty_times_and_meet_ten_full_disks(what: str, tmp_path: Path) -> None:
    for how, count in ((f"{what} killed", 40), (f"{what} full", 10)):
        (tmp_path / how).mkdir()
        made = opened(tmp_path / how / "loop")
        with closing(made):
            fill(made, 60)
            found = interrupt(how, made, tmp_path / how, count)
        logging.getLogger(__name__).info("%s: %d whole, %d rejected", how, found[True], found[False])
        assert all(found.values())


def test_only_the_owner_can_read_copies(tmp_path: Path) -> None:
    loop = opened(tmp_path / "loop")
    fill(loop, 20)
    loop.keep_model()
    loop.close()
    (tmp_path / "loop/tokens").touch(0o600)
    assert main(["loop", str(tmp_path / "loop"), "--backup", str(tmp_path / "copy")]) == 0
    (tmp_path / "copy/snapshot.oam").chmod(0o644)
    assert main(["loop", str(tmp_path / "new"), "--restore", str(tmp_path / "copy")]) == 0
    for name in ("loop", "copy", "new"):
        files = [path for path in (tmp_path / name).glob("**/*") if path.is_file()]
        private = ("snapshot.oam", "tokens", "000000000020.oam")
        modes = {path.name: path.stat().st_mode & 0o777 for path in files if path.name in private}
        assert modes == {each: 0o644 if name == "copy" and each == private[0] else 0o600 for each in private}
