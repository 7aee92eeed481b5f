"""A record that cannot be applied is skipped, counted and located; all others are applied."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.errors import InputError
from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.learning.evaluate import join_log_lines
from onlineauto.service.learning.learner import LogLearner
from onlineauto.service.learning.values import Values
from onlineauto.service.log.segment_log import SegmentLog, read_record, sealed
from onlineauto.service.loop.loop import Every, Loop
from tests.service.traffic import CONFIGURATION, decision, record, records, reward

pytestmark = pytest.mark.lane("ci")

SETTINGS = JoinSettings(reward_wait=30.0)
ODD = 0.123
"""The reward of a decision whose learning fails."""
LINES = list(records(25))
BAD = {
    "no time": sealed(b'{"Type":"reward","EventId":"e1","RewardValue":1}'),
    "another kind": sealed(b'{"Type":"other","Timestamp":"2026-01-01T00:00:00Z"}'),
    "a word for a number": record("reward", 1.0, EventId="e1", RewardValue="many"),
    "a number that is too large": sealed(
        b'{"Type":"reward","Timestamp":"2023-11-14T22:13:21Z","EventId":"e1","RewardValue":1e999}'
    ),
    "a year of five digits": sealed(b'{"Type":"tick","Timestamp":"10000-01-01T00:00:00Z"}'),
    "settings of a later program": record("settings", 1.0, Settings={"unheard_of": 1}),
    "settings of another type": record("settings", 1.0, Settings={"reward_wait": "long"}),
    "more to remember than numbers have": record("settings", 1.0, Settings={"max_finished": 20 * 10**21}),
    "nothing to remember": record("settings", 1.0, Settings={"max_finished": -1}),
    "settings of no wait": record("settings", 1.0, Settings={"reward_wait": -1.0}),
    "settings of another mode": record("settings", 1.0, Settings={"mode": "other"}),
    "settings of another aggregation": record("settings", 1.0, Settings={"aggregation": "median"}),
    "a range that is upside down": record("settings", 1.0, Settings={"reward_range": [5.0, -5.0]}),
    "a default reward without end": record("settings", 1.0, Settings={"default_reward": 1e308}),
    "a position beyond all logs": record(
        "reward", 1.0, EventId="e1", RewardValue=1.0, Source="rank", Behind=10**23
    ),
    "a position before the log": record("reward", 1.0, EventId="e1", RewardValue=1.0, Source="r", Behind=-5),
    "a model that is not there": record("model", 1.0, Model="000000000099"),
    "a wrong checksum": LINES[0][:40] + b"?" + LINES[0][41:],
    "half a line": LINES[0][:100] + b"\n",
    "bytes": b"\x00\xff\xfe of another file\n",
    "no JSON": sealed(b'{"Type":"rank",}'),
}
UNLEARNABLE = {
    "no probabilities": decision("bad", 1.0, a=[], p=[]),
    "no actions": record("rank", 1.0, EventId="bad", a=[1], p=[1.0], c={"_multi": []}),
    "an action that is not there": decision("bad", 1.0, a=[9, 1, 2]),
}


@pytest.fixture(autouse=True)
def failing_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make learning of a decision with the reward `ODD` raise an error in the middle of its step."""
    take = Values.take

    def odd(self: Values, outcomes: Outcomes, **options: Any) -> None:
        take(self, outcomes, **options)
        if any(abs(cost + ODD) < 1e-6 for cost in outcomes.known_cost.tolist()):
            raise FloatingPointError("a line has 3463924201 features once its namespaces are crossed")

    monkeypatch.setattr(Values, "take", odd)


def log_of(folder: Path, lines: Sequence[bytes]) -> SegmentLog:
    log = SegmentLog(folder / "log", segment_bytes=3000)
    for line in lines:
        log.append([line])
    log.sync()
    return log


class Learnt:
    """A learner that has taken a log to its end: its model, its values and what it has skipped."""

    def __init__(self, folder: Path, log: SegmentLog) -> None:
        folder.mkdir(exist_ok=True)
        learner = LogLearner(folder, log, CONFIGURATION, settings=SETTINGS)
        while learner.step():
            if learner.snapshot_due:
                learner.snapshot()
        file = io.BytesIO()
        learner.workspace.save(file)
        self.model, self.values = file.getvalue(), learner.values.values()
        self.learnt, self.counts = learner.learnt, learner.join.counts
        self.faulty, self.skipped, self.latest = learner.faulty, learner.skipped, learner.latest
        learner.close()


@pytest.mark.parametrize("place", [0, 40, -20, -3])
def test_a_damaged_last_record_is_kept_so_that_the_snapshot_behind_it_is_used(
    place: int, tmp_path: Path
) -> None:
    log = log_of(tmp_path, LINES)
    Learnt(tmp_path / "loop", log)
    end = log.end
    log.close()
    last = max((tmp_path / "log").glob("*.dsjson"))
    content = bytearray(last.read_bytes())
    at = place if place < 0 else content[:-1].rfind(b"\n") + 1 + place
    content[at] ^= 1
    last.write_bytes(content + b'{"Type":"rank","half')
    again = SegmentLog(tmp_path / "log", segment_bytes=3000, keep_damaged=True)
    assert (again.end, again.torn) == (end, 20)
    again.append([record("tick", 5000.0)])
    again.sync()
    assert Learnt(tmp_path / "loop", again).skipped == 0
    (tmp_path / "loop/snapshot.oam").unlink()
    found = Learnt(tmp_path / "loop", again)
    assert (found.skipped, found.latest[-1].position) == (1, end - len(LINES[-1]))


def test_a_log_that_ends_before_the_snapshot_is_refused(tmp_path: Path) -> None:
    log = log_of(tmp_path, LINES)
    Learnt(tmp_path / "loop", log)
    log.close()
    last = max((tmp_path / "log").glob("*.dsjson"))
    last.write_bytes(b"".join(last.read_bytes().splitlines(keepends=True)[:-1]))
    shorter = SegmentLog(tmp_path / "log", segment_bytes=3000, keep_damaged=True)
    with pytest.raises(InputError, match=r"the end of the log is lost.* move snapshot.oam to another folder"):
        LogLearner(tmp_path / "loop", shorter, CONFIGURATION)
    (tmp_path / "loop/snapshot.oam").rename(tmp_path / "snapshot.oam")
    assert Learnt(tmp_path / "loop", shorter).skipped == 0


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Learnt:
    folder = tmp_path_factory.mktemp("wanted")
    log = log_of(folder, LINES)
    found = Learnt(folder / "loop", log)
    assert (found.learnt, found.skipped, found.faulty) == (25, 0, 0)
    return found


def place_of(log: SegmentLog, bad: bytes) -> tuple[str, int]:
    return log.place_of(next(position for position, line in log.lines(0) if line == bad))


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
def test_a_record_that_cannot_be_applied_is_skipped_wherever_it_is(
    tmp_path: Path, wanted: Learnt, bad: bytes
) -> None:
    for at in range(0, len(LINES) + 1, 4):
        folder = tmp_path / str(at)
        log = log_of(folder, [*LINES[:at], bad, *LINES[at:]])
        found = Learnt(folder / "loop", log)
        assert (found.model, found.values, found.learnt) == (wanted.model, wanted.values, wanted.learnt)
        assert found.counts == wanted.counts
        assert found.skipped == 1
        assert (found.latest[0].segment, found.latest[0].offset) == place_of(log, bad)
        again = Learnt(folder / "loop", log)  # after a restart
        assert (again.model, again.skipped) == (wanted.model, 1)
        assert len(list(join_log_lines(log))) == 25


@pytest.mark.parametrize("bad", UNLEARNABLE.values(), ids=UNLEARNABLE)
def test_a_decision_that_cannot_be_learnt_is_counted_wherever_it_is(
    tmp_path: Path, wanted: Learnt, bad: bytes
) -> None:
    for at in range(0, len(LINES), 7):
        folder = tmp_path / str(at)
        log = log_of(folder, [*LINES[:at], bad, *LINES[at:]])
        found = Learnt(folder / "loop", log)
        assert (found.model, found.values, found.learnt) == (wanted.model, wanted.values, wanted.learnt)
        assert (found.faulty, found.skipped) == (1, 1)
        assert (found.latest[0].segment, found.latest[0].offset) == place_of(log, bad)


@pytest.mark.parametrize("count", [1, 3])
def test_a_decision_whose_learning_fails_is_left_out_wherever_it_is(
    tmp_path: Path, wanted: Learnt, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at in range(0, len(LINES), 5):
        folder = tmp_path / str(at)
        time = read_record(LINES[at]).time.timestamp() - 1.7e9
        bad = [decision(f"odd{number}", time) for number in range(count)]
        bad += [reward(f"odd{number}", time, ODD) for number in range(count)]
        log = log_of(folder, [*LINES[:at], *bad, *LINES[at:]])
        monkeypatch.setattr("onlineauto.service.learning.learner.MOST_RECORDS", 1 + at)
        found = Learnt(folder / "loop", log)
        assert (found.model, found.values, found.learnt) == (wanted.model, wanted.values, wanted.learnt)
        assert (found.faulty, found.skipped) == (count, count)
        assert "3463924201 features" in found.latest[0].reason
        assert (found.latest[0].segment, found.latest[0].offset) == place_of(log, bad[0])
        assert Learnt(folder / "loop", log).model == wanted.model


def test_a_line_without_an_end_is_cut_and_a_damaged_line_before_it_is_skipped(
    tmp_path: Path, wanted: Learnt
) -> None:
    damaged, torn = BAD["a wrong checksum"], LINES[0][:200]
    log = log_of(tmp_path / "loop", [*LINES[:5], damaged, *LINES[5:], damaged, torn])
    log.close()
    for _ in range(2):
        loop = Loop(tmp_path / "loop", CONFIGURATION, settings={"reward_wait": 30.0})
        while loop.learn():
            pass
        assert (loop.learner.learnt, loop.learner.skipped) == (wanted.learnt, 2)
        loop.close()


def test_a_service_reports_skipped_records(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from onlineauto.service.http.status import status_of

    log_of(tmp_path / "loop", [*LINES[:9], *BAD.values(), *LINES[9:]]).close()
    loop = Loop(tmp_path / "loop", CONFIGURATION, settings={"reward_wait": 30.0}, every=Every(publish=0.0))
    while loop.learn():
        pass
    status: Any = status_of(loop)
    assert (status.learnt, status.skipped, status.learning, status.error) == (25, len(BAD), True, "")
    assert len(status.skipped_latest) == min(len(BAD), 20)
    assert any("checksum" in said for said in status.skipped_latest)
    assert all(" of 0" in said and "was skipped: " in said for said in status.skipped_latest)
    assert caplog.text.count("was skipped") == len(BAD)
    loop.close()


def damaged(data: bytes) -> Iterator[bytes]:
    yield b""
    yield data[: len(data) // 2]
    yield b"no model at all"
    for at in (10, len(data) // 3, len(data) - 5):
        yield data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :]


def test_a_damaged_snapshot_is_learnt_again_from_a_whole_log(
    tmp_path: Path, wanted: Learnt, caplog: pytest.LogCaptureFixture
) -> None:
    log = log_of(tmp_path, LINES)
    Learnt(tmp_path / "loop", log)
    snapshot = tmp_path / "loop/snapshot.oam"
    whole = snapshot.read_bytes()
    for data in damaged(whole):
        snapshot.write_bytes(data)
        assert Learnt(tmp_path / "loop", log).model == wanted.model
        assert "the snapshot is damaged" in caplog.text
        assert (tmp_path / "loop/snapshot.damaged").read_bytes() == data
        assert snapshot.stat().st_size == len(whole)
        caplog.clear()


def test_a_snapshot_with_a_damaged_join_is_learnt_again(
    tmp_path: Path, wanted: Learnt, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, LINES)
    for broken in ({}, {"now": "late"}, None, [1]):
        with monkeypatch.context() as changed:
            changed.setattr(Join, "state", lambda _, broken=broken: broken)
            Learnt(tmp_path / "loop", log)
        assert Learnt(tmp_path / "loop", log).model == wanted.model


def test_a_model_of_the_history_replaces_a_damaged_snapshot_of_a_shortened_log(
    tmp_path: Path, wanted: Learnt
) -> None:
    log, folder = log_of(tmp_path, LINES), tmp_path / "loop"
    folder.mkdir()
    learner = LogLearner(folder, log, CONFIGURATION, settings=SETTINGS)
    learner.snapshot()
    early = (folder / "snapshot.oam").read_bytes()
    while learner.step():
        pass
    learner.models.put("put-0123", b"what somebody else has learnt")
    name = learner.keep()
    learner.close()
    log.remove_first(1)
    assert log.begin > 0
    (folder / "snapshot.oam").write_bytes(b"damaged")
    assert Learnt(folder, log).model == wanted.model
    (folder / "snapshot.oam").write_bytes(early)  # by a process that was suspended while it wrote
    assert Learnt(folder, log).model == wanted.model
    (folder / "snapshot.oam").write_bytes(b"damaged")
    (folder / f"models/{name}.oam").unlink()
    with pytest.raises(InputError, match="no longer has its beginning: restore the file from a backup"):
        Learnt(folder, log)


def test_a_model_that_cannot_be_used_is_skipped(tmp_path: Path, wanted: Learnt) -> None:
    (tmp_path / "loop/models").mkdir(parents=True)
    (tmp_path / "loop/models/broken.oam").write_bytes(b"no model")
    log = log_of(tmp_path, [*LINES, record("model", 900.0, Model="broken")])
    found = Learnt(tmp_path / "loop", log)
    assert (found.model, found.skipped) == (wanted.model, 1)
    assert "not a model" in found.latest[0].reason or "broken.oam" in found.latest[0].reason


def test_a_damaged_snapshot_does_not_lose_a_model_that_was_put(tmp_path: Path) -> None:
    log, folder = log_of(tmp_path, LINES), tmp_path / "loop"
    folder.mkdir()
    learner = LogLearner(folder, log, CONFIGURATION, settings=SETTINGS)
    learner.keep()  # before the put model: it does not replace it
    while learner.step():
        pass
    file = io.BytesIO()
    learner.workspace.save(file)
    learner.models.put("put-1", file.getvalue())
    log.append([record("model", 2000.0, Model="put-1"), decision("last", 2001.0), record("tick", 2100.0)])
    log.sync()
    while learner.step():
        pass
    kept = learner.keep()
    learner.close()
    wanted = Learnt(folder, log)
    assert (wanted.learnt, wanted.skipped) == (26, 0)
    (folder / "models/put-1.oam").unlink()
    (folder / "snapshot.oam").write_bytes(b"damaged")
    assert Learnt(folder, log).model == wanted.model  # by the model of the history behind it
    (folder / "snapshot.oam").write_bytes(b"damaged")
    (folder / f"models/{kept}.oam").unlink()
    for _ in range(2):  # not only at the first start
        with pytest.raises(InputError, match=r"lacks put-1\.oam, which the log names: restore one"):
            LogLearner(folder, log, CONFIGURATION, settings=SETTINGS)
    (folder / "snapshot.damaged").unlink()
    assert Learnt(folder, log).skipped == 1
