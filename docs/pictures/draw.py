"""Draw the pictures of the README and the documentation, light and dark, from ``data``.

``python docs/pictures/draw.py [FOLDER]`` writes them, here by default. ``record.py`` has written the data.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import msgspec

from onlineauto.pictures import Picture, crossings, pmfs, race, rewards, values
from onlineauto.pictures.runs import course_of
from onlineauto.pictures.story import story_of

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).parent
DATA = HERE / "data"
JOURNAL = DATA / "flights-journal.jsonl"
RUNS = {
    "flights-automl": "onlineauto --automl",
    "flights-all-pairs": "all pairs, -q ::",
    "flights-vw": "VW --automl 4",
}
"""By name of a file: what the picture calls the run."""


def pictures(*, dark: bool) -> Iterator[tuple[str, Picture]]:
    """Yield each picture with its name."""
    story = story_of(JOURNAL)
    yield "reward", _reward([events for events, _ in story.swaps], dark=dark)
    yield "race", race(JOURNAL, dark=dark)
    yield "crossings", crossings(story.crossed(), namespaces=story.namespaces, dark=dark)
    yield "pmfs", pmfs(dark=dark)
    yield "values", _values(dark=dark)
    yield "parts", _parts(dark=dark)


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    for dark in (False, True):
        for name, picture in pictures(dark=dark):
            picture.save(folder / f"{name}-{'dark' if dark else 'light'}.svg")


def _reward(changes: list[int], *, dark: bool) -> Picture:
    courses = [
        course_of(DATA / f"{file}.txt")._replace(name=name) for file, name in RUNS.items()
    ]
    # The first hundred events are noise.
    courses = [
        each._replace(
            loss=[
                loss
                for events, loss in zip(each.events, each.loss, strict=True)
                if events > 100
            ],
            events=[events for events in each.events if events > 100],
        )
        for each in courses
    ]
    title = "Which of ten carriers flew? Average reward over a log of 30,000 events"
    picture = rewards(
        courses, changes={RUNS["flights-automl"]: changes}, title=title, dark=dark
    )
    picture.figure.axes[0].set_xlim(left=100)
    return picture


def _values(*, dark: bool) -> Picture:
    recorded = msgspec.json.decode((DATA / "values.json").read_bytes())
    found = {policy: SimpleNamespace(**each) for policy, each in recorded["values"].items()}
    title = "Surveys: what three policies would have cost"
    return values(found, recorded["growth"], title=title, dark=dark)


_BOXES = {
    "log": (0, 1, "log, frame,\ndicts"),
    "block": (1, 1, "block:\nevents in columns"),
    "live": (2, 1, "live configs\nlearn every event"),
    "champion": (3, 1, "the champion\npredicts"),
    "explorer": (4, 1, "explorer: scores\nto probabilities"),
    "oracle": (1, 0, "oracle proposes\nchallengers"),
    "test": (2, 0, "tests, valid\nat any time"),
    "journal": (3, 0, "journal: every\ndecision, and why"),
}
_ARROWS = (
    *(("log", "block"), ("block", "live"), ("live", "champion"), ("champion", "explorer")),
    *(("live", "test"), ("test", "journal"), ("oracle", "live"), ("test", "champion")),
)


def _parts(*, dark: bool) -> Picture:
    """Draw what flows where."""
    picture = Picture(
        9, 2.6, title="How an event becomes a decision, and evidence", dark=dark
    )
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        axes.set_axis_off()
        axes.set_xlim(-0.4, 4.45)
        axes.set_ylim(-0.35, 1.35)
        boxes = {}
        for name, (x, y, text) in _BOXES.items():
            fill = look.champion if name == "champion" else look.paper
            boxes[name] = axes.text(
                x, y, text, ha="center", va="center", size=9, linespacing=1.5,
                color=look.paper if name == "champion" else look.ink,
                bbox={"boxstyle": "round,pad=0.7", "facecolor": fill, "edgecolor": look.quiet},
            )  # fmt: skip
        for start, end in _ARROWS:
            axes.annotate(
                "", xy=_BOXES[end][:2], xytext=_BOXES[start][:2],
                arrowprops={
                    "arrowstyle": "-|>", "color": look.quiet, "linewidth": 1.1, "shrinkA": 3, "shrinkB": 3,
                    "patchA": boxes[start].get_bbox_patch(), "patchB": boxes[end].get_bbox_patch(),
                },
            )  # fmt: skip
    return picture


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
