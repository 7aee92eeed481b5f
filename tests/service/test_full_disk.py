"""A full disk loses no acknowledged record, and the service recovers once the disk has space again."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from onlineauto.service.learning.learner import JournalFile
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.save_load import save_model
from tests.service.serving import Service
from tests.service.traffic import CONFIGURATION, rank_request
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.lane("ci")

RANK = {"context": {"u": {"a": 1}}, "actions": {"a": {"x": {"one": 1}}, "b": {"x": {"two": 1}}}}


class Disk:
    """A disk that can be full: then half of what is written to a log is there, and the rest is not."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full, self.write, self.sync, self.pwrite = False, os.write, os.fdatasync, os.pwrite
        monkeypatch.setattr("onlineauto.service.log.segment_log.os.write", self._write)
        monkeypatch.setattr("onlineauto.service.learning.learner.os.pwrite", self._pwrite)
        monkeypatch.setattr("onlineauto.workspace.run.save_model", self._saved())

    def _write(self, file: int, data: bytes) -> int:
        if not self.full or len(data) < 50:
            return self.write(file, data)
        self.write(file, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    def _pwrite(self, file: int, data: bytes, at: int) -> int:
        if self.full:
            raise OSError(28, "No space left on device")
        return self.pwrite(file, data, at)

    def _saved(self) -> object:
        def saved(*given: object, **named: object) -> None:
            if self.full:
                raise OSError(28, "No space left on device")
            save_model(*given, **named)  # type: ignore[arg-type]

        return saved


def test_a_disk_that_is_full_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    settings, every = {"learn_at": "reward"}, Every(publish=0.0, snapshot=0.0)
    loop = Loop(tmp_path / "loop", CONFIGURATION, settings=settings, every=every)
    acknowledged: list[str] = []
    refused = 0

    def asked(event_id: str) -> bool:
        """Rank and reward, and return whether the log has both."""
        nonlocal refused
        for ask in (loop.rank, loop.reward):
            answered, errors = threading.Event(), list[Exception | None]()

            def done(error: Exception | None, answered: threading.Event = answered) -> None:
                errors.append(error)  # noqa: B023 - called before the next round
                answered.set()

            status = 0
            try:
                if ask == loop.rank:
                    loop.rank(rank_request(event_id, "tom"), done)
                else:
                    loop.reward(event_id, 1.0, done)
            except RefusedError as error:
                status = error.status
            assert status in (0, 503)
            assert status or answered.wait(PATIENCE)
            if status or errors[0] is not None:
                refused += 1
                return False
        acknowledged.append(event_id)
        return True

    for turn in range(2):
        for number in range(20):
            assert asked(f"before-{turn}-{number}")
        disk.full = True
        found = [asked(f"full-{turn}-{number}") for number in range(5)]
        assert not any(found)
        assert not loop.writable
        loop.learn()
        assert "No space left" in loop.trouble
        disk.full = False
        until(lambda: loop.writable)
        for number in range(20):
            assert asked(f"after-{turn}-{number}")
        until(lambda: (loop.learn(), not loop.trouble)[1])
        until(lambda: (loop.learn(), loop.learner.learnt >= len(acknowledged))[1])
    assert refused == 10
    disk.full = True
    loop.close()  # as SIGTERM does: it raises nothing
    disk.full = False
    ranks = {
        record.event_id
        for _, line in SegmentLog(tmp_path / "loop/log", read_only=True).lines(0)
        for record in (read_record(line),)
        if record.kind == "rank"
    }
    assert set(acknowledged) <= ranks
    again = Loop(tmp_path / "loop", CONFIGURATION)
    while again.learn():
        pass
    assert again.learner.learnt == again.join.counts.joined >= len(acknowledged)
    again.close()


def test_a_journal_retains_records_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    journal = JournalFile(tmp_path / "a.jsonl", 0)
    for full in (False, True, True, False):
        disk.full = full
        journal.write(b"%d\n" % full)
        journal.flush()
    assert journal.tell() == 8
    journal.sync()
    assert (tmp_path / "a.jsonl").read_bytes() == b"0\n1\n1\n0\n"
    disk.full = True
    journal.write(b"2\n")
    with pytest.raises(OSError, match="No space"):
        journal.sync()
    journal.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Yield a disk of 12 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_service_on_a_disk_that_is_full_twice(small_disk: Path) -> None:
    filling = small_disk / "filling"

    def fill() -> None:
        with filling.open("ab", buffering=0) as file:
            for size in (1 << 16, 4096, 64, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue

    acknowledged = 0
    with (
        Service(small_disk / "loop", "--snapshot_every", "0.3", "--publish_every", "0.1") as service,
        httpx.Client(base_url=service.url, timeout=PATIENCE) as client,
    ):
        # the file of its messages is beside the folder, so on the same disk
        def pair(event_id: str) -> int:
            answer = client.post("/v1/rank", json={**RANK, "event_id": event_id})
            if answer.status_code != 200:
                return answer.status_code
            return client.post("/v1/reward", json={"event_id": event_id, "reward": 1}).status_code

        for turn in range(2):
            assert {pair(f"before-{turn}-{number}") for number in range(50)} == {204}
            fill()
            numbers = iter(range(5000))
            until(lambda: pair(f"full-{turn}-{next(numbers)}") == 503)  # noqa: B023
            until(lambda: client.get("/healthz").status_code == 503)
            assert "No space left" in client.get("/healthz").text
            assert client.get("/readyz").text.startswith("no: the log cannot be written: [Errno 28] No space")
            kept = client.post("/v1/models")
            assert kept.status_code in (503, 507), kept.text
            assert "the disk is full" in kept.json()["error"]["message"]
            filling.unlink()
            until(lambda: client.get("/healthz").text == "ok\n")
            assert {pair(f"after-{turn}-{number}") for number in range(50)} == {204}
            acknowledged += 100
            until(lambda: client.get("/v1/status").json()["learnt"] >= acknowledged)  # noqa: B023
            until(lambda: client.get("/v1/status").json()["error"] == "")  # once the model is saved again
            status = client.get("/v1/status").json()
            assert (status["learning"], status["ready"]) == (True, True)
            assert client.post("/v1/models").status_code == 201
        fill()
        assert service.stop() == 0
        assert "Traceback" not in service.log.read_text()
    again = Service(small_disk / "loop").start()
    try:
        until(lambda: "No space left" in answer_of(again, "/readyz"))
        assert answer_of(again, "/healthz").startswith("no: the log cannot be written: [Errno 28] No space")
        filling.unlink()
        again.wait()
        assert answer_of(again, "/healthz") == "ok\n"
        until(lambda: httpx.get(f"{again.url}/v1/status").json()["learnt"] >= acknowledged)
    finally:
        again.kill()


def answer_of(service: Service, path: str) -> str:
    """Return the text of an answer, or "" while the port is not open."""
    try:
        return httpx.get(service.url + path).text
    except httpx.TransportError:
        return ""
