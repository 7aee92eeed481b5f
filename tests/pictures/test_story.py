"""What a journal tells: which config was live where, and how it ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from onlineauto.automl.config import ConfigKind
from onlineauto.errors import InputError
from onlineauto.pictures.story import Stretch, story_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.lane("ci")

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


def test_a_file_and_lines_without_the_first_tell_the_same(tmp_path: Path) -> None:
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
def test_what_is_no_story(lines: list[dict[str, Any]], message: str) -> None:
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


def test_what_predicts() -> None:
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
def test_a_line_on_what_predicts_that_says_nothing_is_refused(wrong: dict[str, Any]) -> None:
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
