"""`fit` accepts files of any format, mappings, texts and blocks, and `fit_table` frames."""

from __future__ import annotations

import gzip
import io
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from onlineauto import AutoML, InputError, convert
from onlineauto.interop import event_dsjson, event_text, from_dicts
from tests.api.events import ACTIONS, logged

pytestmark = pytest.mark.lane("quick")

N = 200


def _with_costs() -> list[dict[str, Any]]:
    events = list(logged(N))
    for event in events:
        event["cost"] = -event.pop("reward")
    return events


@pytest.fixture(scope="module")
def fitted() -> AutoML:
    return AutoML().fit(logged(N))


def _same(one: AutoML, other: AutoML) -> bool:
    return bool((one.workspace.weights == other.workspace.weights).all()) and one.events == other.events


def _as_json(event: dict[str, Any]) -> str:
    logged_line = json.loads(event_dsjson(event))
    label = {name: value for name, value in logged_line.items() if name.startswith("_label")}
    context = logged_line["c"]
    context["_multi"][label.pop("_labelIndex")] |= label
    return json.dumps(context)


def test_every_format_is_recognised(tmp_path: Path, fitted: AutoML) -> None:
    events = _with_costs()
    texts = [event_text(event) for event in events]
    for name, content in {
        "events.txt": "\n".join(texts),
        "events.log": "".join(map(event_dsjson, events)),
        "events.json": "".join(_as_json(event) + "\n" for event in events),
    }.items():
        plain, packed = tmp_path / name, tmp_path / f"{name}.gz"
        plain.write_text(content)
        packed.write_bytes(gzip.compress(content.encode()))
        for source in (plain, str(packed), content.encode(), [plain]):
            assert _same(AutoML().fit(source), fitted), (name, source)
        for path in (plain, packed):
            with path.open("rb") as file:
                assert _same(AutoML().fit(file), fitted)
    convert(tmp_path / "events.txt", tmp_path / "events.blocks", cb_explore_adf=True)
    assert _same(AutoML().fit(tmp_path / "events.blocks"), fitted)
    assert _same(AutoML().fit(texts), fitted)
    assert _same(AutoML().fit(event_dsjson(event) for event in events), fitted)
    assert _same(AutoML().fit(from_dicts(events)), fitted)
    [block] = from_dicts(events)
    assert _same(AutoML().fit(block), fitted)


def test_frames_are_learnt(fitted: AutoML) -> None:
    polars = pytest.importorskip("polars")
    events = list(logged(N))
    frame = polars.DataFrame(
        {
            "user": [event["context"]["user"] for event in events],
            "took": [event["actions"][event["chosen"]]["article"] for event in events],
            "earned": [event["reward"] for event in events],
            "p": [event["probability"] for event in events],
        }
    )
    for each in (frame, frame.to_pandas(), frame.to_arrow()):
        bandit = AutoML().fit_table(
            each, actions="took", reward="earned", probability="p", choices=list("xyz")
        )
        assert bandit.events == N
        assert bandit.predict({"user": "ann"}, [{"took": name} for name in "xyz"]).argmax() == 1
    with pytest.raises(InputError, match=r"there are user, took, earned, p$"):
        AutoML().fit_table(frame)
    assert fitted.events == N


def test_a_frame_that_cannot_be_read_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"user": ["tom"], "took": ["x"], "p": [1.0], "earned": [1.0]})
    with pytest.raises(InputError, match="no column 'earnt'; there are user"):
        AutoML().fit_table(frame, actions="took", reward="earnt", probability="p")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install '\.\[frames\]'"):
        AutoML().fit_table(frame, actions="took", reward="earned", probability="p")


def test_malformed_lines_cause_one_warning() -> None:
    text = "\n".join(map(event_text, _with_costs()))
    text += "\nshared |a x\n0:b:1 |a y\n\n0:1:2 |a y\n\n0:1:3 |a y\n\n"
    with pytest.warns(UserWarning, match=r"^3 problems in the input:\n  2, .* first: <bytes>:\d+:") as all_of:
        bandit = AutoML().fit(text.encode())
    assert len(all_of) == 1
    assert all_of[0].filename == __file__
    assert bandit.events == N


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (b"", "the source has no events"),
        ([], "the source has no events"),
        (b"1 |a x\n0 |a y\n", "looks like single lines, which AutoMLRegressor"),
        (b"\x89PNG|\x1a\n\0|\n", "nothing was learnt; it is not text"),
        (b"a,b,c\n1,2,3\n", "looks like neither VW text nor JSON: read a table with pandas"),
        ([{"context": {}, "actions": ACTIONS}], "has 1 event, and none with a logged cost or reward"),
        (b"shared |u x\n|a y\n|a z\n", "has 1 event, and none with a logged cost or reward"),
        ("no/such/file", "no such file"),
        ([{"x": 1}], "event 0: it has no actions"),
        ([{"actions": ACTIONS, "rewrd": 1}], r"event 0: unknown key 'rewrd'; did you mean reward\?"),
        ([{"actions": ACTIONS, "zzz": 1}], "event 0: unknown key 'zzz'; an event has context, .*, reward"),
        ([(1, 2)], "event 0: an event is a mapping, a text or a Block, not tuple"),
        ([{"actions": ACTIONS, "action": 5}], "event 0: the action is 5, and there are 3"),
        ([{"actions": ACTIONS, "chosen": 1, "reward": "x", "probability": 1}], "event 0: reward 'x' is not"),
        ({"context": {}, "actions": ACTIONS}, "one event: give a list of events, or use learn"),
        ("shared |u x\n|a y\n", "text, and not a path: give a list of texts, or the bytes"),
        (5, "not a source of events"),
    ],
)
def test_error_explains_an_event_that_cannot_be_learnt(source: Any, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InputError, match=message):
            AutoML().fit(source)


def test_events_before_a_problem_are_learnt() -> None:
    bandit = AutoML()
    events = [*logged(50), {"actions": []}]
    with pytest.raises(InputError, match="event 50: actions is empty"):
        bandit.fit(events)
    assert bandit.events == 50


def test_a_progress_bar_is_displayed_if_requested(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    path = tmp_path / "events.txt"
    path.write_text("\n".join(map(event_text, _with_costs())))
    bandit = AutoML().fit(path, progress=True)
    assert "%" in capsys.readouterr().err
    AutoML().fit(logged(N), progress=True)
    assert f"{N} events" in capsys.readouterr().err
    assert _same(AutoML().fit(path), bandit)
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    AutoML().fit(list(logged(N)))
    assert "200/200" in terminal.getvalue()
    shown = terminal.getvalue()
    AutoML().fit(list(logged(N)), progress=False)
    assert terminal.getvalue() == shown


@pytest.mark.parametrize("actions", [None, 3, "ab"])
def test_malformed_actions_are_located(actions: Any) -> None:
    events = list(logged(2))
    events[1]["actions"] = actions
    with pytest.raises(InputError, match=r"^event 1: actions are a list or a mapping of features"):
        AutoML().fit(events)
