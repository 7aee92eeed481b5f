"""An event that is too wide for a member is skipped by it, and stops it only if such events are the rule."""

from __future__ import annotations

import io
import random
from typing import Any

import pytest

from onlineauto import Workspace
from onlineauto.engine.ensemble.ensemble import able_scores
from onlineauto.engine.records.ensemble import OF_CROSSES, OF_INPUTS

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 2, "bit_precision": 12}
WORDS = ("crosses one by one", "crosses in pairs", "crosses in triples")


def stream(n: int, wide: dict[int, str]) -> list[str]:
    """Choices in contexts of two words and a number, or of 400 words or 100 numbers where they are wide."""
    draw, events = random.Random(3), []
    for i in range(n):
        user, took = draw.randrange(3), draw.randrange(2)
        context = f"u{user} v{draw.randrange(4)} x:{draw.random():.3f}"
        if i in wide:
            size, value = (400, "") if wide[i] == "words" else (100, ":0.5")
            context += "".join(f" w{i}_{k}{value}" for k in range(size))
        cost = -float(draw.random() < (0.8 if took == user % 2 else 0.2))
        lines = [f"{f'0:{cost}:0.5 ' if took == a else ''}|t a{a}\n" for a in range(2)]
        events.append(f"shared |c {context}\n{''.join(lines)}\n")
    return events


def able(workspace: Workspace) -> dict[str, bool]:
    return able_scores(workspace.searching.live_configs.arrays.ensemble)


def wide_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble.members.inputs.wide


@pytest.mark.parametrize("at", [0, 100])
@pytest.mark.parametrize("kind", ["words", "numbers"])
def test_one_wide_event_stops_no_member(kind: str, at: int) -> None:
    workspace = Workspace(**OPTIONS, members="features,waves,crosses,baseline")
    for event in stream(300, {at: kind}):
        workspace.learn(event)
    known = able(workspace)
    assert all(known[name] for name in ("features", "waves", "baseline", *WORDS)), known
    assert wide_of(workspace)[OF_INPUTS] == 1
    assert wide_of(workspace)[OF_CROSSES] == (kind == "words")  # numbers without bins are not crossed


def test_wide_events_that_are_the_rule_stop_the_members_concerned() -> None:
    workspace = Workspace(**OPTIONS, members="features,waves,crosses,baseline")
    for event in stream(240, dict.fromkeys(range(0, 240, 2), "words")):
        workspace.learn(event)
    known = able(workspace)
    assert not known["features"]
    assert not any(known[name] for name in WORDS)
    assert known["waves"]


def test_counts_of_wide_events_are_saved_and_older_files_have_none() -> None:
    events, file = stream(200, dict.fromkeys((20, 21, 30), "words")), io.BytesIO()
    whole, first = Workspace(**OPTIONS), Workspace(**OPTIONS)
    expected = [whole.learn(event).tolist() for event in events]
    for event in events[:100]:
        first.learn(event)
    first.save(file)
    again = Workspace.load(file.getvalue())
    assert wide_of(again).tolist() == wide_of(first).tolist()
    assert [again.learn(event).tolist() for event in events[100:]] == expected[100:]
    state = first.state()
    del state["search"]["slots"]["stack"]["inputs"]["wide"]
    older = Workspace(**OPTIONS)
    older.restore(state)
    assert not wide_of(older).any()
