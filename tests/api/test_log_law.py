"""Nothing in a log of decisions stops what comes after it: a line that cannot be applied is skipped, counted,
located and reported, wherever it stands, and everything else is learnt as if it were not there."""

from __future__ import annotations

import errno
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onlineauto import AutoML, InputError, OnlineautoError
from tests.api.events import ACTIONS, context, serve

pytestmark = pytest.mark.lane("sampled")

HEAD = b'"EventId":"x","Timestamp":"2026-01-01T00:00:00.000000Z"'
C = b'"c":{"u":{"a":1.0},"_multi":[{"b":{"c":1.0}},{"b":{"d":1.0}}]}'
LABEL = b'"_label_cost":-1,"_label_probability":0.5,"_label_Action":1,"_labelIndex":0'
BAD = {
    "no JSON": b"no JSON",
    "VW text": b"shared |user tom",
    "binary": b"\x00\xff\xfe\x1f\x8b",
    "torn": b'{%b,"a":[1,2],"p":[0.5' % HEAD,
    "an array": b"[1,2]",
    "a number": b"17",
    "no end of the context": b'{%b,"a":[1,2],"p":[0.5,0.5],"c":{' % HEAD,
    "too deep": b'{%b,"a":[1,2],"p":[0.5,0.5],"c":%b' % (HEAD, b'{"a":' * 3000),
    "invalid UTF-8": b'{"EventId":"\xff","a":[1,2],"p":[0.5,0.5],%b}' % C,
    "no propensity": b'{%b,%b,"a":[1,2],"p":[0,1],%b}' % (HEAD, LABEL.replace(b"0.5", b"0"), C),
    "propensity above 1": b'{%b,%b,"a":[1,2],"p":[2,0],%b}' % (HEAD, LABEL.replace(b"0.5", b"2"), C),
    "propensity is NaN": b'{%b,%b,"a":[1,2],"p":[2,0],%b}' % (HEAD, LABEL.replace(b"0.5", b'"NaN"'), C),
    "cost is NaN": b'{%b,%b,"a":[1,2],"p":[2,0],%b}' % (HEAD, LABEL.replace(b"-1", b'"NaN"'), C),
    "cost is too large": b'{%b,%b,"a":[1,2],"p":[2,0],%b}' % (HEAD, LABEL.replace(b"-1", b"1e39"), C),
    "no such action": b'{%b,%b,"a":[1,2],"p":[1,0],%b}' % (HEAD, LABEL.replace(b'Index":0', b'Index":7'), C),
    "no actions": b'{%b,%b,"a":[1,2],"p":[1,0],"c":{"_multi":[]}}' % (HEAD, LABEL),
    "a value that is too large": b'{%b,%b,"a":[1],%b}' % (HEAD, LABEL, C.replace(b"1.0", b"1e39")),
    "pdrop": b'{%b,%b,"pdrop":1,"a":[1,2],%b}' % (HEAD, LABEL, C),
    "ranking of strings": b'{%b,"a":["1"],"p":[1,0],%b}' % (HEAD, C),
    "ranking of fractions": b'{%b,"a":[0.5],"p":[1,0],%b}' % (HEAD, C),
    "probabilities of strings": b'{%b,"a":[1,2],"p":["x"],%b}' % (HEAD, C),
    "no probabilities": b'{%b,"a":[1,2],%b}' % (HEAD, C),
    "id of a number": b'{"EventId":5,"a":[1,2],"p":[0.5,0.5],%b}' % C,
    "no id": b'{"a":[1,2],"p":[0.5,0.5],%b}' % C,
    "reward is too large": b'{"EventId":"y","RewardValue":1e300}',
    "reward of a string": b'{"EventId":"y","RewardValue":"1"}',
    "reward of a list": b'{"EventId":"y","RewardValue":[1]}',
    "reward of a truth value is one": b'{"EventId":5,"RewardValue":true}',
    "reward that is no JSON": b'{"EventId":"y","RewardValue":1e999}',
    "reward without an id": b'{"RewardValue":1}',
}
"""Lines that cannot be applied."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "decisions.dsjson"
    serve(AutoML(decision_log=path, seed=1), 4)
    return path


def joined(path: Path) -> tuple[bytes, int, str]:
    """Return the state of a model that learnt a log, its number of events, and its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        model = AutoML(live_configs=1).join(path)
    return model.workspace.weights.tobytes(), model.events, "\n".join(str(each.message) for each in heard)


@pytest.mark.parametrize("kind", BAD)
def test_an_invalid_line_is_skipped(kind: str, log: Path, tmp_path: Path) -> None:
    expected, events, said = joined(log)
    assert (events, said) == (4, "")
    lines, path = log.read_bytes().splitlines(), tmp_path / "log.dsjson"
    for place in range(len(lines) + 1):
        path.write_bytes(b"\n".join([*lines[:place], BAD[kind], *lines[place:]]) + b"\n")
        weights, found, said = joined(path)
        assert (weights, found) == (expected, 4), place
        assert f"{path}:{place + 1}:" in said, place


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from(sorted(BAD))), max_size=6))
def test_several_invalid_lines_are_skipped(log: Path, tmp_path: Path, drawn: list[tuple[int, str]]) -> None:
    lines, path = log.read_bytes().splitlines(), tmp_path / "log.dsjson"
    for place, kind in drawn:
        lines.insert(place, BAD[kind])
    path.write_bytes(b"\n".join(lines) + b"\n")
    weights, events, said = joined(path)
    assert (weights, events) == joined(log)[:2]
    assert bool(said) == bool(drawn)


@pytest.mark.parametrize("kind", ["no JSON", "binary", "torn", "an array"])
def test_an_invalid_first_line_does_not_change_the_format(kind: str, log: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    labelled = b"{%b,%b,%b}" % (HEAD, LABEL, C)
    path.write_bytes(b"\n".join([BAD[kind], *[labelled] * 5]) + b"\n")
    with pytest.warns(UserWarning, match=f"{path}:1:"):
        assert AutoML().fit(path).events == 5


def test_a_truncated_gzip_log_is_learnt_up_to_its_end(log: Path, tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(log.read_bytes() * 200)[:-40])
    model = AutoML(live_configs=1)
    with pytest.raises(InputError, match=r"log\.gz:\d+: .*everything before this line was used"):
        model.join(path)
    assert model.events > 3


def test_a_truncated_line_does_not_damage_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.dsjson"
    bandit = AutoML(decision_log=path)
    serve(bandit, 2)
    write = os.write

    def nearly_full(file: int, data: bytes) -> int:
        if len(data) > 10:
            return write(file, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    full = iter(
        [nearly_full, lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "No space left on device"))]
    )

    def failing(file: int, data: bytes) -> int:
        return next(full)(file, data)

    monkeypatch.setattr(os, "write", failing)
    with pytest.raises(OnlineautoError, match=f"cannot log decisions to {path}: No space left"):
        bandit.rank(context(0), ACTIONS)
    monkeypatch.undo()
    serve(bandit, 2)
    with pytest.warns(UserWarning, match=f"{path}:5:"):
        assert AutoML().join(path).events == 4


@pytest.mark.parametrize("event_id", ["", "\ud800", 3, b"x"])
def test_an_id_that_no_log_can_have_is_refused(event_id: object, tmp_path: Path) -> None:
    bandit = AutoML(decision_log=tmp_path / "log.dsjson")
    with pytest.raises(InputError, match="event_id is a str"):
        bandit.rank(context(0), ACTIONS, event_id=event_id)  # type: ignore[arg-type]
    assert (tmp_path / "log.dsjson").read_bytes() == b""
