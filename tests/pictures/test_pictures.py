"""Pictures are drawn in both looks, whole, and the same each time; how they look is for eyes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.errors import InputError, OptionError
from onlineauto.evaluation.evaluation import Bounded
from onlineauto.pictures import Picture, check_picture, crossings, parts, race, rewards, values
from onlineauto.pictures.race import difference
from onlineauto.pictures.runs import course_of, has_table
from onlineauto.pictures.story import story_of
from tests.engine.ensemble_streams import odd
from tests.pictures.test_story import JOURNAL, rotate

if TYPE_CHECKING:
    from pathlib import Path

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


def test_what_cannot_be_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
