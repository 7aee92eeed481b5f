"""Of the processes that share a folder, one at a time learns, and a standby takes over without a loss."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Self

import httpx
import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.service.http import server
from onlineauto.service.http.http_protocol import bind_socket
from onlineauto.service.http.standby import wait_for_lease
from onlineauto.service.http.tokens import Tokens
from onlineauto.service.learning.learner import JournalFile
from onlineauto.service.log import segment_log
from onlineauto.service.log.segment_log import SegmentLog, read_record
from onlineauto.service.loop import lease as lease_module
from onlineauto.service.loop import loop as loop_module
from onlineauto.service.loop.folder import FolderCopy, FolderIdentity, FolderLock, claim_folder, promote_copy
from onlineauto.service.loop.lease import Lease, LeaseError, Standby, check_shared, latest_epoch
from onlineauto.service.loop.loop import Every, Loop
from onlineauto.service.options import ServeOptions
from onlineauto.service.refused import RefusedError
from tests.service.serving import Service
from tests.service.test_kill import check
from tests.service.traffic import CONFIGURATION, rank_request
from tests.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


def claimed(standby: Standby) -> Lease:
    lease = standby.poll()
    assert lease is not None
    return lease


def opened(folder: Path, lease: Lease | None) -> Loop:
    return Loop(folder, CONFIGURATION, settings={"learn_at": "reward"}, every=Every(publish=0.0), lease=lease)


def ranked(loop: Loop, event_id: str) -> Exception | None:
    """Rank an event, and return the error with which the log answers."""
    answers: list[Exception | None] = []
    loop.rank(rank_request(event_id), answers.append)
    until(lambda: answers)
    return answers[0]


def events_of(folder: Path) -> list[str]:
    log = SegmentLog(folder / "log", read_only=True)
    return [read_record(line).event_id for _, line in log.lines(0) if line.startswith(b'{"Type":"rank"')]


# -- the lease -----------------------------------------------------------------------------------------


def test_one_of_many_claims_an_epoch(shared: Path) -> None:
    standbys = [Standby(shared, seconds=4.0) for _ in range(8)]
    barrier, found = threading.Barrier(8), list[Lease | None]()

    def poll(standby: Standby) -> None:
        barrier.wait()
        found.append(standby.poll())

    threads = [threading.Thread(target=poll, args=(standby,)) for standby in standbys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert [lease.epoch for lease in found if lease is not None] == [1]


def test_a_standby_waits_longer_than_the_holder_writes(shared: Path, clock: Clock) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    standby = Standby(shared, seconds=4.0, clock=clock)
    clock.now += 3.9
    lease.check()
    assert standby.poll() is None
    lease.renew()
    assert standby.poll() is None
    clock.now += 3.9
    lease.check()
    assert standby.poll() is None
    clock.now += 0.2
    with pytest.raises(LeaseError, match="not renewed for 4 seconds"):
        lease.check()
    assert standby.poll() is None
    clock.now += 1.0
    assert claimed(standby).epoch == 2


def test_an_expired_lease_continues_with_a_new_epoch(shared: Path, clock: Clock) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    clock.now += 100.0
    assert lease.problem
    lease.renew()
    lease.check()
    assert (lease.epoch, latest_epoch(shared)) == (2, 2)


def test_a_claim_on_a_full_disk_is_none(shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    standby = Standby(shared, seconds=4.0, clock=clock)
    standby.poll()
    clock.now += 5.1

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        for claim in (lease.renew, standby.poll):
            with pytest.raises(OSError, match="No space left"):
                claim()
    assert latest_epoch(shared) == 1
    assert not lease.lost
    lease.renew()
    assert (lease.epoch, lease.problem) == (2, "")


def test_an_old_epoch_is_refused_for_good(shared: Path, clock: Clock) -> None:
    old = claimed(Standby(shared, seconds=4.0, clock=clock))
    standby = Standby(shared, seconds=4.0, clock=clock)
    standby.poll()
    clock.now += 5.1
    new = claimed(standby)
    for _ in range(3):
        old.renew()
        with pytest.raises(
            LeaseError, match=r"with epoch 2 has taken over .*; the epoch of this process is 1"
        ):
            old.check()
    new.check()
    assert latest_epoch(shared) == 2


def test_a_takeover_is_noticed_before_the_lease_expires(shared: Path, clock: Clock) -> None:
    old = claimed(Standby(shared, seconds=4.0, clock=clock))
    slow = Clock()  # a machine whose clock runs too fast, or whose folder is old
    standby = Standby(shared, seconds=4.0, clock=slow)
    standby.poll()
    slow.now += 5.1
    claimed(standby)
    with pytest.raises(LeaseError, match="has taken over"):
        old.check()


def test_a_takeover_counts_where_its_folder_cannot_be_listed(
    shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    (shared / "leases" / "00000002.json").touch()
    monkeypatch.setattr(lease_module, "holder_of", lambda _: "")
    assert "another process has taken over" in lease.problem


def test_a_released_lease_is_taken_at_once(shared: Path, clock: Clock) -> None:
    first = Standby(shared, seconds=4.0, clock=clock)
    lease = claimed(first)
    assert first.holder == ""
    lease.release()
    assert claimed(Standby(shared, seconds=4.0, clock=clock)).epoch == 2


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="--standby does not exist"):
        Standby(tmp_path / "missing", seconds=4.0)


# -- a loop with a lease --------------------------------------------------------------------------------


def test_without_its_lease_a_loop_neither_answers_nor_learns(shared: Path, clock: Clock) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    loop = opened(shared, lease)
    assert ranked(loop, "e1") is None
    clock.now += 5.0
    assert isinstance(ranked(loop, "e2"), LeaseError)
    with pytest.raises(RefusedError) as refused:
        loop.rank(rank_request("e3"), print)
    assert refused.value.status == 503
    with pytest.raises(LeaseError):
        loop.learn()
    assert "was not renewed" in loop.trouble
    assert not loop.writable
    lease.renew()
    until(lambda: loop.writable)
    assert ranked(loop, "e4") is None
    loop.close()
    assert events_of(shared) == ["e1", "e2", "e4"]  # the second one was answered 503, and may count


def take_over(shared: Path, clock: Clock) -> Loop:
    standby = Standby(shared, seconds=4.0, clock=clock)
    standby.poll()
    clock.now += 5.1
    return opened(shared, claimed(standby))


def test_a_holder_that_comes_back_cannot_write(shared: Path, clock: Clock) -> None:
    old = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    assert ranked(old, "e1") is None
    new = take_over(shared, clock)
    assert isinstance(ranked(old, "e2"), LeaseError)
    assert ranked(new, "e3") is None
    os.write(old.log._file, b"late bytes of a write that was under way\n")
    with pytest.raises(LeaseError):
        old.learn()
    snapshot = shared / "snapshot.oam"
    new.learn()
    new.learner.snapshot()
    written = snapshot.stat().st_mtime_ns
    old.close()
    assert snapshot.stat().st_mtime_ns == written
    new.reward("e1", 1.0, lambda _: None)
    new.close()
    assert new.learner.learnt == 1
    assert events_of(shared) == ["e1", "e3"]


@pytest.mark.parametrize("moment", ["before the write", "before the disk has it", "after the disk has it"])
def test_a_takeover_in_the_middle_of_a_commit_loses_nothing(
    shared: Path, clock: Clock, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    assert ranked(old, "e1") is None
    new: list[Loop] = []
    names = {"before the write": "write", "before the disk has it": "fdatasync"}
    if moment in names:
        function = getattr(os, names[moment])

        def late(*arguments: Any) -> Any:
            if not new:
                new.append(old)  # so that the writes of the other loop are not late
                new[0] = take_over(shared, clock)
            return function(*arguments)

        monkeypatch.setattr(os, names[moment], late)
    else:
        fence, calls = old.log.fence, list[int]()
        assert fence is not None

        def checked() -> None:
            calls.append(1)
            if len(calls) == 2:  # the first call is before the write
                new.append(take_over(shared, clock))
            fence()

        old.log.fence = checked
    assert isinstance(ranked(old, "e2"), LeaseError)
    monkeypatch.undo()
    assert ranked(new[0], "e3") is None
    old.close()
    new[0].close()
    assert events_of(shared) in (["e1", "e3"], ["e1", "e2", "e3"])


def test_a_service_without_a_lease_is_refused(shared: Path, clock: Clock) -> None:
    loop = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    loop.close()
    with pytest.raises(InputError, match=r"is shared: .* had its lease. Give --standby"):
        opened(shared, None)


def test_a_lease_does_not_replace_a_service_without_one(shared: Path) -> None:
    loop = opened(shared, None)
    with pytest.raises(InputError, match="another service runs in"):
        check_shared(shared, shared)
    loop.close()
    check_shared(shared, shared)


@pytest.mark.parametrize(
    "moment", ["before the lock", "before the copy", "before the rename", "before the log"]
)
def test_a_suspended_claimant_replaces_nothing(
    shared: Path, clock: Clock, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    first = opened(shared, lease)
    assert ranked(first, "e1") is None
    first.close()
    lease.release()
    slow = Clock()
    late = claimed(Standby(shared, seconds=4.0, clock=slow))
    new: list[Loop] = []

    def suspended(function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            result = function(*arguments, **options)
            if not new:
                new.append(first)  # so that the other loop is not suspended
                slow.now += 5.1
                new[0] = take_over(shared, clock)
                assert ranked(new[0], "e2") is None
            return result

        return call

    if moment == "before the lock":
        suspended(lambda: None)()
    elif moment == "before the copy":
        monkeypatch.setattr(lease_module, "promote_copy", suspended(promote_copy))
    elif moment == "before the rename":
        monkeypatch.setattr(shutil, "copy2", suspended(shutil.copy2))
    else:
        monkeypatch.setattr(loop_module, "claim_folder", suspended(claim_folder))
    with pytest.raises(InputError, match=r"has taken over"):
        opened(shared, late)
    assert ranked(new[0], "e3") is None
    assert not [*(shared / "log").glob("*.new")]
    with pytest.raises(InputError, match="another service runs in"):
        FolderLock(shared)
    new[0].close()
    assert events_of(shared) == ["e1", "e2", "e3"]


def test_a_takeover_waits_for_another_one(shared: Path) -> None:
    first = claimed(Standby(shared, seconds=4.0))
    entered = list[int]()

    def enter() -> None:
        with first.alone():
            entered.append(1)

    thread = threading.Thread(target=enter)
    with first.alone():
        thread.start()
        thread.join(0.2)
        assert not entered
    thread.join()
    assert entered


def test_a_replaced_log_acknowledges_nothing(shared: Path, clock: Clock) -> None:
    loop = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    assert ranked(loop, "e1") is None
    segment_log.replace_last_segment(shared / "log", suffix=".9.new", alone=nullcontext)
    assert "has replaced" in str(ranked(loop, "e2"))
    loop.close()
    assert events_of(shared) == ["e1"]


def test_a_standby_that_lost_its_claim_waits_again(
    shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    claimed(Standby(shared, seconds=4.0, clock=clock))
    found: list[Lease] = []
    monkeypatch.setattr(server, "warm_up", lambda _: None)

    def wait(_: Standby, *, check: Callable[[], object]) -> Lease:
        check()
        other = Clock()
        standby = Standby(shared, seconds=4.0, clock=other)
        standby.poll()
        other.now += 5.1
        found.append(claimed(standby))
        other.now += 10.0 * (len(found) < 2)
        return found[-1]

    options = ServeOptions(standby=str(shared), lease_seconds=4.0)
    lease = server._lease_of(shared, CONFIGURATION, options, wait)
    assert lease is found[1]
    assert lease.epoch == 3
    lease.release()


@pytest.mark.parametrize("ends", [False, True], ids=["a claim", "a signal"])
def test_a_slow_client_does_not_delay_a_standby(
    shared: Path, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    clock = Clock()
    holder = claimed(Standby(shared, seconds=0.2, clock=clock))
    standby = Standby(shared, seconds=0.2, clock=clock)
    with bind_socket("127.0.0.1", 0) as bound, socket.socket() as client:

        def check() -> None:
            if not client.getsockname()[1]:
                client.connect(bound.getsockname())
                client.sendall(b"POST /v1/rank HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
            elif ends:
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                holder.release()

        begin = time.monotonic()
        found = wait_for_lease(
            standby, bound, check=check, tokens=Tokens(shared / "tokens"), hosts=["localhost"]
        )
        assert time.monotonic() - begin < 2.0
        assert (found is None) == ends
        client.settimeout(PATIENCE)
        with suppress(ConnectionResetError):
            while client.recv(4096):
                pass


def test_a_late_snapshot_replaces_nothing(
    shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    assert ranked(old, "e1") is None
    old.learn()
    old.learner.snapshot()
    new: list[Loop] = []
    checkpoint = old.learner._run.checkpoint

    def late(file: Any) -> None:
        checkpoint(file)
        if not new:
            new.append(take_over(shared, clock))
            assert ranked(new[0], "e2") is None
            new[0].learn()
            new[0].learner.snapshot()

    monkeypatch.setattr(old.learner._run, "checkpoint", late)
    with pytest.raises(OSError, match="has taken over"):
        old.learner.snapshot()
    written = (shared / "snapshot.oam").read_bytes()
    with pytest.raises(OSError, match="has taken over"):
        old.keep_model()
    with pytest.raises(LeaseError):
        old.log.remove_first(1)
    old.close()
    assert (shared / "snapshot.oam").read_bytes() == written
    assert not [*(shared / "models").iterdir()]
    new[0].close()


def test_a_late_journal_is_not_written(tmp_path: Path) -> None:
    lost: list[OSError] = []

    @contextmanager
    def alone() -> Iterator[None]:
        if lost:
            raise lost[0]
        yield

    journal = JournalFile(tmp_path / "j.jsonl", 0, alone=alone)
    journal.write(b"before\n")
    journal.flush()
    lost.append(LeaseError("another process has taken over"))
    journal.write(b"after\n")
    with pytest.raises(LeaseError):
        journal.sync()
    journal.close()
    with pytest.raises(LeaseError):
        JournalFile(tmp_path / "j.jsonl", 0, alone=alone)
    assert (tmp_path / "j.jsonl").read_bytes() == b"before\n"


def test_a_holder_that_comes_back_changes_no_file(shared: Path, clock: Clock) -> None:
    """It neither adds nor removes models, nor truncates the journal that its successor writes."""
    loop = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    old = loop.learner
    assert ranked(loop, "e1") is None
    loop.learn()
    old.keep()
    old.models.keep = 1
    new = take_over(shared, clock)
    journal = shared / "journals" / "000000000000.jsonl"
    journal.write_bytes(b"of the successor\n")
    before = {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()}
    with pytest.raises(OSError, match="has taken over"):
        loop.put_model("put-late", new.empty_model(), lambda _: None)
    with pytest.raises(OSError, match="has taken over"):
        old.models.add("put-later", lambda _: None)
    old._broken = True  # as after a step that has failed
    with pytest.raises(OSError, match="has taken over"):
        loop.model()
    (shared / "snapshot.oam").write_bytes(before.setdefault(shared / "snapshot.oam", b"damaged"))
    with pytest.raises(OSError, match="has taken over"):
        old.mend()
    old.log.segment_bytes = 1
    with pytest.raises(OSError, match="has taken over"):
        old.log._rotate()
    assert {path: path.read_bytes() for path in shared.rglob("*") if path.is_file()} == before
    new.close()


def test_a_segment_is_not_begun_after_a_takeover(
    shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = opened(shared, claimed(Standby(shared, seconds=4.0, clock=clock)))
    assert ranked(old, "e1") is None
    old.log.segment_bytes = 1  # so that the next record begins a segment
    new: list[Loop] = []
    sync = old.log.sync

    def late() -> None:
        sync()
        if not new:
            new.append(take_over(shared, clock))

    monkeypatch.setattr(old.log, "sync", late)
    assert isinstance(ranked(old, "e2"), LeaseError)
    assert ranked(new[0], "e3") is None
    old.close()
    new[0].close()
    assert len([*(shared / "log").iterdir()]) == 1
    assert events_of(shared) == ["e1", "e3"]


# -- a copy that the standby continues -------------------------------------------------------------------


def test_the_copy_has_each_answer_and_its_standby_continues_it(
    tmp_path: Path, shared: Path, clock: Clock
) -> None:
    own = tmp_path / "own"
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    old = opened(own, lease)
    with FolderCopy(own, old.log, shared, fence=lease.check) as copy:
        for number in range(5):
            assert ranked(old, f"e{number}") is None
            assert events_of(shared)[-1] == f"e{number}"
        assert copy.position == old.log.durable
        name = old.keep_model()
        old.use_model(name, lambda _: None)
        until(lambda: not old.unwritten)
        assert (shared / "models" / f"{name}.oam").exists()
        with pytest.raises(InputError, match="is shared"):
            opened(shared, None)
        until(lambda: FolderIdentity.read(shared).whole)  # type: ignore[union-attr]
        new = take_over(shared, clock)
        assert isinstance(ranked(old, "late"), LeaseError)
        assert ranked(new, "e5") is None
        with pytest.raises(InputError, match=r"own is not served: .* with epoch 2 has taken over"):
            check_shared(own, shared)
        old.close()
    new.close()
    assert events_of(shared) == [f"e{number}" for number in range(6)]


def test_a_late_step_of_a_copy_changes_no_file(
    tmp_path: Path, shared: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    old = opened(own, lease)
    copy = FolderCopy(own, old.log, shared, fence=lease.check)
    assert ranked(old, "e1") is None
    name = old.keep_model()
    copy.step()
    (own / "models" / f"{name}.oam").unlink()
    new: list[Loop] = []
    monkeypatch.setattr(copy, "_copy_snapshot", lambda _: new.append(take_over(shared, clock)))
    with pytest.raises(OSError, match="has taken over"):
        copy.step()
    assert (shared / "models" / f"{name}.oam").exists()
    (own / "tokens").write_bytes(b"late")
    with pytest.raises(OSError, match="has taken over"):
        copy._copy_named_files()
    with pytest.raises(OSError, match="has taken over"):
        copy._identify(whole=False)
    assert not (shared / "tokens").exists()
    assert FolderIdentity.read(shared).kind == "service"  # type: ignore[union-attr]
    old.close()
    new[0].close()


def test_without_its_copy_a_service_does_not_answer(tmp_path: Path, shared: Path, clock: Clock) -> None:
    own = tmp_path / "own"
    lease = claimed(Standby(shared, seconds=4.0, clock=clock))
    loop = opened(own, lease)
    with FolderCopy(own, loop.log, shared, fence=lease.check):
        assert ranked(loop, "e1") is None
        shared.rename(tmp_path / "away")
        assert isinstance(ranked(loop, "e2"), InputError)
        (tmp_path / "away").rename(shared)
        until(lambda: loop.writable)
        assert ranked(loop, "e3") is None
        loop.close()
    assert events_of(shared) == events_of(own) == ["e1", "e2", "e3"]


def test_an_incomplete_copy_is_not_continued(shared: Path) -> None:
    FolderIdentity(("x",), "copy", whole=False).write(shared)
    claimed(Standby(shared, seconds=4.0))
    with pytest.raises(OSError, match="is not whole"):
        check_shared(shared, shared)


# -- processes ------------------------------------------------------------------------------------------


RATE = 200.0
"""Number of decisions a second."""


def posted(client: HTTPConnection, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
    client.request("POST", path, json.dumps(body))
    answer = client.getresponse()
    return answer.status, answer.read()


class Load:
    """Ranks and rewards at the rate, at whichever of two services answers."""

    def __init__(self, ports: list[int], *, seed: int) -> None:
        self.ports, self.seed = ports, seed
        self.ranked: dict[str, list[Any]] = {}
        self.rewarded: set[str] = set()
        self.answers: list[float] = []  # the times of the answers to ranks
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(4)]

    def __enter__(self) -> Self:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _run(self, number: int) -> None:
        draw, at, due = Random(f"{self.seed} {number}"), 0, time.monotonic()
        clients = [HTTPConnection("127.0.0.1", port, timeout=30.0) for port in self.ports]
        while not self.stop.is_set():
            due = max(due + len(self.threads) / RATE, time.monotonic())
            event_id = f"{self.seed}-{number}-{draw.getrandbits(40)}"
            user = draw.choice(["tom", "ann"])
            actions = {each: {"topic": {each: 1}} for each in ("art", "sports", "music")}
            body = {"event_id": event_id, "context": {"user": {user: 1}}, "actions": actions}
            try:
                status, text = posted(clients[at], "/v1/rank", body)
                if status == 200:
                    answer = json.loads(text)
                    self.answers.append(time.monotonic())
                    self.ranked[event_id] = [answer["action"], answer["probability"]]
                    liked = float(answer["action"] == ("art" if user == "tom" else "music"))
                    reward = {"event_id": event_id, "reward": liked, "key": "k"}
                    if posted(clients[at], "/v1/reward", reward)[0] == 204:
                        self.rewarded.add(event_id)
                else:
                    at = 1 - at
            except (OSError, HTTPException):
                clients[at].close()
                at = 1 - at
            time.sleep(max(due - time.monotonic(), 0.0))
        for client in clients:
            client.close()


def is_standby(service: Service) -> bool:
    try:
        return "a standby" in httpx.get(f"{service.url}/healthz").text
    except httpx.TransportError:
        return False


def taken_over(folder: Path, served: Path, kills: int, *, seconds: str) -> tuple[list[float], float]:
    """Kill the learner under load, a standby each time; return the pauses and the load."""
    words = ("--standby", str(served), "--lease_seconds", seconds, "--reward_wait", "1")
    often = ("--snapshot_every", "0.5", "--publish_every", "0.1")
    ranked: dict[str, list[Any]] = {}
    rewarded: set[str] = set()
    pauses, rates = [], []
    with ExitStack() as started:
        learner = Service(folder, *words, *often).start().wait()
        started.callback(learner.kill)
        for number in range(kills):
            standby = Service(served, *words, *often)
            standby.log = served.with_suffix(f".{number}.stderr")
            started.callback(standby.start().kill)
            until(lambda: is_standby(standby), what=standby.log.read_text)  # noqa: B023
            with Load([learner.port, standby.port], seed=number) as load:
                until(lambda: len(load.rewarded) > 200)
                killed_at = time.monotonic()
                rates.append(len(load.answers) / (killed_at - load.answers[0]))
                learner.kill()
                until(lambda: load.answers[-1] > killed_at + 0.1, what=standby.log.read_text)  # noqa: B023
                pauses.append(next(time for time in load.answers if time > killed_at + 0.1) - killed_at)
                count = len(load.rewarded)
                until(lambda: len(load.rewarded) > count + 50)  # noqa: B023
            ranked |= load.ranked
            rewarded |= load.rewarded
            learner = standby
        until((served / "snapshot.oam").exists)
    check(served, ranked, rewarded)
    assert latest_epoch(served) == kills + 1
    return pauses, sum(rates) / len(rates)


@pytest.mark.ci
@pytest.mark.parametrize("own", [False, True], ids=["one folder", "a copy"])
def test_a_killed_learner_is_replaced(tmp_path: Path, shared: Path, own: bool) -> None:
    pauses, _ = taken_over(tmp_path / "own" if own else shared, shared, 1, seconds="1")
    assert max(pauses) < 10.0, pauses


@pytest.mark.slow
def test_twenty_killed_learners_are_replaced(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pauses, rate = taken_over(shared, shared, int(os.environ.get("ONLINEAUTO_KILLS", "20")), seconds="4")
    with capsys.disabled():
        print(f"{rate:.0f} decisions a second; taken over in {min(pauses):.2f} to {max(pauses):.2f} s")  # noqa: T201
    assert max(pauses) < 10.0, pauses


@pytest.mark.ci
def test_a_suspended_learner_that_continues_ends(shared: Path) -> None:
    words = ("--standby", str(shared), "--lease_seconds", "1")
    old, new = Service(shared, *words), Service(shared, *words)
    new.log = shared.with_suffix(".standby.stderr")
    with old:
        new.start()
        until(lambda: is_standby(new), what=new.log.read_text)
        body = {"event_id": "e1", "actions": {"a": {"x": 1}, "b": {"y": 1}}}
        assert httpx.post(f"{old.url}/v1/rank", json=body).status_code == 200
        old.process.send_signal(signal.SIGSTOP)
        new.wait()
        old.process.send_signal(signal.SIGCONT)
        assert old.process.wait(PATIENCE) == 1
        assert "this process no longer serves: " in old.log.read_text()
        assert "with epoch 2 has taken over" in old.log.read_text()
        assert httpx.post(f"{new.url}/v1/rank", json=body).status_code == 200
        assert httpx.get(f"{new.url}/v1/status").json()["epoch"] == 2
        old.kill()  # which also gives its port back
        assert new.stop() == 0
    with Service(shared, *words) as again:  # at once: the lease was released
        assert httpx.get(f"{again.url}/v1/status").json()["epoch"] == 3


def test_a_shared_folder_is_made_if_it_is_the_folder_of_the_service(tmp_path: Path) -> None:
    folder = tmp_path / "volume"
    with Service(folder, "--standby", str(folder)) as service:
        assert httpx.get(f"{service.url}/v1/status").json()["epoch"] == 1
    with pytest.raises(OptionError, match="does not exist"):
        Standby(tmp_path / "no/volume", seconds=4.0, make=True)
    with pytest.raises(OptionError, match="does not exist"):
        Standby(tmp_path / "other", seconds=4.0)
