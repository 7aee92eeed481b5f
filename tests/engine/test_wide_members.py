"""An event that is too wide for a member is skipped by it, unless such events are the rule."""

from __future__ import annotations

import copy
import io
import random
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.ensemble.combiner_kernels import KEEPS
from onlineauto.engine.ensemble.ensemble import able_scores, new_variance, weight_of
from onlineauto.engine.ensemble.states import constant_of, states_of
from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    Known,
    WideCount,
)
from onlineauto.workspace.inspection.inspection import inspection

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


def with_others(events: list[str], at: range) -> list[str]:
    """Return the events, some of which offer as many other actions as may be known."""
    more = "".join(f"|t other{k}\n" for k in range(MOST_ACTIONS))
    return [f"{event[:-1]}{more}\n" if i in at else event for i, event in enumerate(events)]


def able(workspace: Workspace) -> dict[str, bool]:
    return able_scores(workspace.searching.live_configs.arrays.ensemble)


def inputs_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble.members.inputs


def wide_of(workspace: Workspace) -> Any:
    return inputs_of(workspace).wide


def learnt(events: list[str]) -> Workspace:
    workspace = Workspace(**OPTIONS, members="features,waves,crosses,baseline")
    for event in events:
        workspace.learn(event)
    return workspace


@pytest.mark.parametrize("at", [0, 100])
@pytest.mark.parametrize("kind", ["words", "numbers"])
def test_one_wide_event_stops_no_member(kind: str, at: int) -> None:
    workspace = learnt(stream(300, {at: kind}))
    known = able(workspace)
    assert all(known[name] for name in ("features", "waves", "baseline", *WORDS)), known
    assert wide_of(workspace)[WideCount.INPUTS] == 1
    assert wide_of(workspace)[WideCount.CROSSES] == (kind == "words")  # numbers without bins are not crossed


@pytest.mark.parametrize(("kind", "inputs", "numbers"), [("words", 300, 2), ("numbers", None, 64)])
def test_wide_events_that_are_the_rule_have_the_first_inputs(
    kind: str, inputs: int | None, numbers: int
) -> None:
    workspace = learnt(stream(240, dict.fromkeys(range(0, 240, 2), kind)))
    known = able(workspace)
    assert known["features"]
    assert known["waves"]
    assert any(known[name] for name in WORDS) == (kind == "numbers")
    assert inputs_of(workspace).tally[Known.NUMBERS] == numbers
    assert inputs is None or inputs_of(workspace).tally[Known.FEATURES] == inputs


def test_a_member_that_stops_has_no_weight() -> None:
    """Its part of the prediction goes to the other members, like that of a member that rests."""
    workspace = learnt(stream(200, {}))
    ensemble = workspace.searching.live_configs.arrays.ensemble
    shown = {each["who"]: each["weight"] for each in inspection(workspace, names={})["ensemble"]}
    assert shown["crosses in pairs"] != 0.0
    at = weight_of(ensemble, "crosses in pairs")
    for event in stream(400, dict.fromkeys(range(200, 400), "words"))[200:]:
        workspace.learn(event)
    assert not able(workspace)["crosses in pairs"]
    for one in (at, constant_of(ensemble) + 1 + at):  # its weight and that of its level
        assert ensemble.weights[one] == 0.0
        least, variance = new_variance(ensemble), ensemble.spread[one, one]
        assert least <= variance <= least / KEEPS**200  # it grows with the 200 events or fewer since the stop
        assert np.count_nonzero(ensemble.spread[one]) == 1
    assert np.array_equal(ensemble.spread, ensemble.spread.T)


@pytest.mark.parametrize("at", [0, 100])
def test_one_event_with_many_actions_does_not_join_them(at: int) -> None:
    events = stream(300, {})
    workspace = learnt(with_others(events, range(at, at + 1)))
    inputs = inputs_of(workspace)
    assert inputs.tally[Known.ACTIONS] == 2
    assert (inputs.wide[WideCount.ACTIONS], inputs.wide[WideCount.CROWDING]) == (1, 0)
    assert inputs.seen[:2].sum() == (299 if at == 0 else 300)  # its logged action is known later on
    assert all(able(workspace).values())


def test_an_event_whose_logged_action_is_not_known_teaches_members_nothing() -> None:
    workspace = learnt(stream(300, {}))
    states = states_of(workspace.searching.live_configs.arrays.ensemble)
    arrays = [
        *(states.state_of("features").regression[:2], states.state_of("waves").regression[:2]),
        *(states.state_of("crosses")[:2], states.state_of("baseline")[:2]),
    ]
    before = copy.deepcopy(arrays)
    others = "".join(f"{'0:-1:0.02 ' if k == 7 else ''}|t other{k}\n" for k in range(MOST_ACTIONS))
    workspace.learn(f"shared |c u1 v2 x:0.5\n{others}\n")
    for now, old in zip(arrays, before, strict=True):
        assert all(map(np.array_equal, now, old))
    assert inputs_of(workspace).seen[:2].sum() == 300


def test_actions_are_joined_if_there_are_often_too_many_lately() -> None:
    for every, joined in ((9, False), (7, False), (2, True)):
        workspace = learnt(with_others(stream(200, {}), range(0, 200, every)))
        assert (inputs_of(workspace).tally[Known.ACTIONS] > MOST_ACTIONS) == joined, every
    events = with_others(stream(1040, {}), range(1000, 1040))
    workspace = learnt(events[:1016])
    assert inputs_of(workspace).tally[Known.ACTIONS] == 2
    workspace.learn(events[1016])
    assert inputs_of(workspace).tally[Known.ACTIONS] > MOST_ACTIONS


def test_counts_of_wide_events_are_saved() -> None:
    events, file = stream(200, dict.fromkeys((20, 21, 30), "words")), io.BytesIO()
    whole, first = Workspace(**OPTIONS), Workspace(**OPTIONS)
    expected = [whole.learn(event).tolist() for event in events]
    for event in events[:100]:
        first.learn(event)
    first.save(file)
    again = Workspace.load(file.getvalue())
    assert wide_of(again).tolist() == wide_of(first).tolist()
    assert [again.learn(event).tolist() for event in events[100:]] == expected[100:]
