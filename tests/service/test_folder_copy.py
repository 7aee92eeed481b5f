"""The log on a second disk: the first disk takes at most the lag with it, and damage is reported."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from onlineauto.cli.main import main
from onlineauto.service.http.metrics import ServiceMetrics
from onlineauto.service.http.status import status_of
from onlineauto.service.log.record import read_record
from onlineauto.service.log.segment_log import SegmentLog
from onlineauto.service.loop.folder import FolderCopy, OtherLogError, restore_folder
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Every, Loop
from tests.service.serving import Service
from tests.service.test_kill import OFTEN, Load
from tests.service.test_kill import check as check_kill
from tests.service.test_threads import rank_request
from tests.service.traffic import CONFIGURATION
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from onlineauto.service.log.log_copier import CopyStatus


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
        path = next(each for each in reversed(segments) if int(each.stem) <= position)
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
