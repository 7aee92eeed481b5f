"""Pictures are drawn in both looks, whole, and the same each time; how they look is for eyes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.automl.config import ConfigKind
from onlineauto.errors import InputError, OptionError
from onlineauto.evaluation.evaluation import Bounded
from onlineauto.pictures import Picture, check_picture, crossings, parts, race, rewards, values
from onlineauto.pictures.race import difference
from onlineauto.pictures.runs import course_of, has_table
from onlineauto.pictures.story import Stretch, story_of
from tests.engine.ensemble_streams import odd

pytestmark = pytest.mark.lane("ci")

TABLE = """\
average  since         example        example        current        current  current
loss     last          counter         weight          label        predict features
0.000000 0.000000            1            1.0      0:-0:0.82          0:0.1      160
-0.14824 -0.16187          512          512.0      5:-0:0.82         5:0.95      160

finished run
number of examples = 1000
average loss = -0.250000
"""


def texts(picture: Picture) -> set[str]:
    return {text.get_text() for axes in picture.figure.axes for text in axes.texts}


@pytest.mark.parametrize("dark", [False, True])
def test_race(tmp_path: Path, *, dark: bool) -> None:
    picture = race(JOURNAL, dark=dark)
    assert picture.figure.texts[0].get_text() == "The champion changed once in 100 events"
    assert texts(picture) >= {"1 interaction", "+ Z\N{MULTIPLICATION SIGN}b", "2 interactions", "+ b"}
    assert len(picture.figure.axes) == 2
    picture.save(tmp_path / "one.svg")
    race(JOURNAL, dark=dark).save(tmp_path / "other.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
    assert picture._repr_svg_().startswith("<?xml")
    paper = b"#0d1117" if dark else b"#ffffff"
    assert paper in (tmp_path / "one.svg").read_bytes()


def test_race_without_bounds_has_no_reward() -> None:
    picture = race([*JOURNAL[:4], JOURNAL[-1]])
    assert len(picture.figure.axes) == 1
    assert picture.figure.texts[0].get_text() == "The champion never changed in 100 events"


def test_race_of_many_lanes() -> None:
    lines = [rotate(0, slot, ["Z", f"n{slot}"]) for slot in range(60)]
    picture = race([*lines, JOURNAL[-1]], title="Many")
    assert picture.figure.get_figheight() < 16
    assert picture.figure.texts[0].get_text() == "Many"


def test_race_shows_when_the_ensemble_predicts() -> None:
    journal: list[dict[str, Any]] = []
    workspace = Workspace(cb_explore_adf=True, automl=3, default_lease=60, bit_precision=10)
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    workspace.fit(odd(1000, numbers=2))
    since = [line["events"] for line in journal if line["decision"] == "predict_with"]
    axes = race(journal).figure.axes[0]
    legend = axes.get_legend()
    assert legend is not None
    assert "the ensemble predicts" in {text.get_text() for text in legend.get_texts()}
    begins = [np.asarray(path.vertices)[0, 0] for drawn in axes.collections for path in drawn.get_paths()]
    assert since[0] in begins
    without = race(JOURNAL).figure.axes[0].get_legend()
    assert without is not None
    assert "the ensemble predicts" not in {text.get_text() for text in without.get_texts()}


def test_differences() -> None:
    found = [difference(each) for each in story_of(JOURNAL).stretches]
    assert found[1] == "+ Z\N{MULTIPLICATION SIGN}b"
    assert found[2] == "\N{MINUS SIGN} Z\N{MULTIPLICATION SIGN}a"
    assert found[3].endswith("learning_rate 2")
    exact = [rotate(0, 1, ["a", "b"], kind="exclusion"), JOURNAL[-1]]
    assert difference(story_of(exact).stretches[1]) == "\N{MINUS SIGN} a\N{MULTIPLICATION SIGN}b"


def test_courses(tmp_path: Path) -> None:
    path, other = tmp_path / "ours.txt", tmp_path / "other.txt"
    path.write_text(TABLE)
    other.write_text("nothing\n")
    assert has_table(path)
    assert not has_table(other)
    course = course_of(path)
    assert course == ("ours", [1, 512, 1000], [0.0, -0.14824, -0.25])
    with pytest.raises(InputError, match="has no progress table"):
        course_of(other)
    picture = rewards([course, course._replace(name="twin")], changes={"ours": [100]})
    assert texts(picture) == {"ours  0.25", "twin  0.25"}
    heights = sorted(text.xy[1] for text in picture.figure.axes[0].texts)  # type: ignore[attr-defined]
    assert heights[1] - heights[0] > 0.01  # names of curves that end together are apart
    assert rewards([course], losses=True).figure.axes[0].get_ylabel() == "average loss"


def test_crossings() -> None:
    picture = crossings([(b"user", b"page"), (b"page", b"user", b"user")], namespaces=[b"hour"])
    (axes,) = picture.figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["hour", "page", "user"]
    assert texts(picture) == {"1"}
    assert len(axes.patches) == 6


def test_values() -> None:
    infinite = float("inf")
    estimates = {
        "as logged": Bounded(-0.3, -0.4, -0.2),
        "--cb_explore_adf -q :: --epsilon 0.1 --automl 4": Bounded(-0.5, -infinite, infinite),
    }
    growth = {"as logged": [(1, -infinite, infinite), (10, -1.0, 0.0), (20, -0.8, -0.1), (30, -0.4, -0.2)]}
    ends, course = values(estimates, growth, alpha=0.1).figure.axes
    labels = [label.get_text() for label in ends.get_yticklabels()]
    assert labels == ["as logged", "--cb_explore_adf -q ::\n--epsilon 0.1 --automl 4"]
    assert np.asarray(course.lines[0].get_xdata()).tolist() == [10, 20, 30]


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_formats(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"p.{ending}"
    Picture(2, 2, title="Nothing").save(path)
    assert path.stat().st_size > 500


def test_invalid_pictures_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptionError, match="ends with"):
        Picture(2, 2, title="Nothing").save(tmp_path / "p.doc")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(OptionError, match=r"pip install '\.\[plot\]'"):
        check_picture("p.svg")


@pytest.mark.parametrize("dark", [False, True])
def test_parts_of_an_explanation(tmp_path: Path, *, dark: bool) -> None:
    features = {f"f{i}": 0.5 / (i + 1) for i in range(14)}
    best: dict[str, Any] = {
        "action": 0,
        "action_id": "a1",
        "reward": 2.0,
        "level": 0.3,
        "features": features,
        "rest": {"waves": -0.1},
    }
    other = best | {"action": 1, "action_id": "b2", "reward": 1.0, "features": {"f0": -0.2}}
    picture = parts({"predicts": "ensemble", "actions": [other, best]}, dark=dark)
    first, second = picture.figure.axes
    assert (first.get_title(loc="left"), second.get_title(loc="left")) == ("a1: 2", "b2: 1")
    named = [label.get_text() for label in first.get_yticklabels()]
    assert named == ["what all actions share", *(f"f{i}" for i in range(5)), *named[6:11], "5 others"]
    widths = sum(bar.get_width() for bar in first.containers[0])
    assert widths == pytest.approx(best["level"] + sum(features.values()) - 0.1)
    parts({"predicts": "ensemble", "actions": [other, best]}, dark=dark).save(tmp_path / "other.svg")
    picture.save(tmp_path / "one.svg")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


ZA, ZB = ["Z", "a"], ["Z", "b"]


def rotate(events: int, slot: int, *elements: list[str], **more: Any) -> dict[str, Any]:
    line = {"decision": "rotate", "events": events, "slot": slot, "index": slot, "kind": "inclusion"}
    return line | {"elements": list(elements), "bounds": None} | more


def bounds(updates: int, low: float, high: float) -> dict[str, float]:
    return {"updates": updates, "lower": 0, "upper": 1, "champion_lower": low, "champion_upper": high}


JOURNAL: list[dict[str, Any]] = [
    {"decision": "search", "command": "--cb_explore_adf --automl 3"},
    {"decision": "widen", "events": 0, "names": ["Z", "a"]},
    rotate(0, 0, ZA),
    rotate(0, 1, ZA, ZB),
    rotate(0, 2),
    {"decision": "extend", "events": 20, "slot": 1, "lease": 40, "place_of": None,
     "bounds": bounds(20, 0, 1)},
    {"decision": "remove", "events": 30, "slot": 2, "index": 2, "bounds": bounds(30, 0.1, 0.9)},
    rotate(30, 2, ZB, bounds=bounds(30, 0.1, 0.9), settings={"learning_rate": 2.0}),
    {"decision": "widen", "events": 35, "names": ["b"]},
    {"decision": "swap", "events": 50, "slot": 1, "kind": "inclusion", "elements": [ZA, ZB],
     "bounds": bounds(50, 0.2, 0.8), "by": "loss", "keeps": True},
    {"decision": "reopen", "events": 70, "what": "reopen", "indices": [0, 1, 2]},
    {"decision": "end", "events": 100},
]  # fmt: skip


def times(stretches: list[Stretch]) -> list[tuple[int, int, int, str]]:
    return [(each.lane, each.begin, each.end, each.outcome) for each in stretches]


def test_stretches() -> None:
    story = story_of(JOURNAL)
    assert times(story.stretches) == [
        (0, 0, 50, "deposed"),
        (1, 0, 50, "promoted"),
        (2, 0, 30, "worse"),
        (2, 30, 100, "live"),
        (0, 50, 100, "live"),
        (1, 50, 100, "live"),
    ]
    assert story.stretches[1].leases == [20]
    assert story.stretches[5].config == story.stretches[0].config
    assert story.swaps == [(50, 1)]
    assert story.drifts == [70]
    assert story.late == [(35, (b"b",))]
    assert story.namespaces == [b"Z", b"a", b"b"]
    assert story.events == 100
    assert story.champion_interactions() == [(b"Z", b"a"), (b"Z", b"b")]
    assert [(each.events, each.updates, each.low) for each in story.intervals] == [
        (20, 20, 0), (30, 30, 0.1), (30, 30, 0.1), (50, 50, 0.2)
    ]  # fmt: skip


def test_a_swap_that_ends_the_others() -> None:
    swap = JOURNAL[9] | {"keeps": False, "slot": 2, "elements": [ZB]}
    story = story_of([*JOURNAL[:9], swap, JOURNAL[-1]])
    assert times(story.stretches)[-2:] == [(0, 50, 100, "live"), (1, 50, 100, "live")]
    assert times(story.stretches)[1] == (1, 0, 50, "waiting")


def test_configs_that_leave_interactions_out() -> None:
    lines = [JOURNAL[0], JOURNAL[1], {"decision": "end", "events": 9}]
    story = story_of(lines)
    assert story.champion.kind is ConfigKind.EXCLUSION
    assert story.champion_interactions() == [(b"Z", b"Z"), (b"Z", b"a"), (b"a", b"a")]


def test_a_journal_file_and_its_lines_give_the_same_story(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in JOURNAL))
    assert story_of(path) == story_of(str(path)) == story_of(JOURNAL) == story_of(JOURNAL[1:])


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "nothing to draw"),
        (JOURNAL[:2], "nothing to draw"),
        ([JOURNAL[0], JOURNAL[5]], "which never became live"),
        ([JOURNAL[0], rotate(3, 2)], "which never became live"),
        ([{"decision": "dance", "events": 1}], "not a line of a journal"),
    ],
)
def test_journals_without_a_search_are_rejected(lines: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        story_of(lines)


def predict_with(events: int, who: str) -> dict[str, Any]:
    return {
        "decision": "predict_with",
        "events": events,
        "who": who,
        "by": "loss",
        "ensemble": bounds(9, 0, 1),
    }


def test_a_story_has_the_predictor() -> None:
    lines = [*JOURNAL[:5], predict_with(10, "ensemble"), *JOURNAL[5:10], predict_with(60, "champion")]
    story = story_of([*lines, *JOURNAL[10:]])
    assert story.predicted == [(10, "ensemble"), (60, "champion")]
    assert times(story.stretches) == times(story_of(JOURNAL).stretches)
    assert story.intervals == story_of(JOURNAL).intervals
    assert story_of(JOURNAL).predicted == []


@pytest.mark.parametrize(
    "wrong",
    [{"who": "mix"}, {"who": None}, {"ensemble": None}, {"ensemble": {"updates": -1}}, {"events": -1}],
)
def test_an_incomplete_line_about_the_predictor_is_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="not a line of a journal"):
        story_of([*JOURNAL[:5], predict_with(10, "ensemble") | wrong])


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_torn_journal_is_drawn_as_far_as_it_is_whole(
    end: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "torn.jsonl"
    lines = [json.dumps(line) + "\n" for line in JOURNAL]
    path.write_text("".join(lines[:-1]) + lines[-1][:9] + end)
    story = story_of(path)
    assert times(story.stretches) == times(story_of(JOURNAL[:-1]).stretches)
    (warning,) = caplog.records
    number = len(lines)
    assert warning.getMessage().startswith(f"1 line is left out of the picture; the first: {path}:{number}: ")
