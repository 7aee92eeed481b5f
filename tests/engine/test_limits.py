"""More actions and features than members have regressions and inputs for: nothing stops, and all is saved."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.ensemble.ensemble import able_scores
from onlineauto.engine.ensemble.inputs import make_inputs, read_inputs
from onlineauto.engine.ensemble.merge import merge_inputs
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.ensemble import MOST_ACTIONS, MOST_FEATURES, MOST_NUMBERS, Known
from onlineauto.state.schema import save
from onlineauto.state.stored import Stored
from tests.engine.ensemble_streams import renewed
from tests.engine.test_merging import merge

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 2, "default_lease": 60, "bit_precision": 10}
LIMITS = [(33, 20), (64, 20), (128, 20), (129, 20), (3, 299), (3, 300), (3, 1000), (129, 1000), (128, 1000)]
at_limits = pytest.mark.parametrize(("actions", "words"), LIMITS)


def stream(n: int, *, actions: int, words: int, first: int = 0, seed: int = 0) -> list[str]:
    """Events of ten words of so many each, all of which come up, and of actions from `first` on."""
    draw, events = np.random.default_rng(seed), []
    for at in range(n):
        own = dict.fromkeys(
            (10 * at + k if 10 * at < words else int(draw.integers(words))) % words for k in range(10)
        )
        shown = int(draw.integers(actions))
        label = f"0:{0.1 * draw.normal() - (next(iter(own)) % 2 == shown % 2):.3f}:{1 / actions:.6f} "
        lines = (f"{label if k == shown else ''}|a a{first + k}\n" for k in range(actions))
        events.append("shared |w " + " ".join(f"word{word}" for word in own) + "\n" + "".join(lines) + "\n")
    return events


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def inputs_of(workspace: Workspace) -> Any:
    return ensemble_of(workspace).members.inputs


def again(workspace: Workspace) -> Workspace:
    file = io.BytesIO()
    workspace.save(file)
    return Workspace.load(file.getvalue())


def learnt(events: list[str], **options: Any) -> Workspace:
    workspace = Workspace(**OPTIONS | options)
    for event in events:
        workspace.learn(event)
    return workspace


@at_limits
def test_what_is_beyond_a_limit_stops_nothing_and_is_saved(actions: int, words: int) -> None:
    events = stream(190, actions=actions, words=words)
    whole = learnt(events[:150])
    tally = inputs_of(whole).tally
    assert tally[Known.ACTIONS] == actions
    own = actions if actions > MOST_ACTIONS else 0  # joined actions have inputs too
    assert tally[Known.FEATURES] == min(1 + words + own, MOST_FEATURES)
    able = able_scores(ensemble_of(whole))
    assert able["features"]
    assert able["ridge"] == (actions <= MOST_ACTIONS)
    other, copied = again(whole), copy.deepcopy(whole)
    for event in events[150:]:
        expected = whole.learn(event).tolist()
        assert other.learn(event).tolist() == copied.learn(event).tolist() == expected


@pytest.mark.parametrize(("actions", "words"), [(70, 20), (3, 200), (70, 200)])
def test_branches_that_are_beyond_a_limit_together_merge(actions: int, words: int) -> None:
    base = Workspace(**OPTIONS)
    one, other = (
        learnt(stream(80, actions=actions, words=words, first=k * actions, seed=k)) for k in range(2)
    )
    for event in stream(20, actions=3, words=words):
        other.learn(event.replace("word", "other"))
    result = merge(base, [one, other], [80, 100])
    assert inputs_of(result).tally[Known.ACTIONS] == min(2 * actions, MOST_ACTIONS + 1)
    events = stream(20, actions=actions, words=words, seed=2)
    copied = again(result)
    for event in events:
        assert np.array_equal(result.learn(event), copied.learn(event))
        assert np.isfinite(ensemble_of(result).weights).all()


def test_a_replaced_input_of_a_branch_is_replaced_in_the_merged_inputs() -> None:
    events = [f"{event}\n\n" for event in renewed(900).decode().strip().split("\n\n")]
    base = learnt(events[:400])
    one, other = copy.deepcopy(base), copy.deepcopy(base)
    for event in events[400:]:
        one.learn(event)
    before, now = (set(inputs_of(each).feature.tolist()) - {0} for each in (base, one))
    assert now - before
    inputs, branches = merge_inputs(inputs_of(base), [inputs_of(one), inputs_of(other)])
    assert set(inputs.feature.tolist()) - {0} == now
    lost = len(before - now)
    assert [np.count_nonzero(branch.inputs < 0) for branch in branches] == [lost, 0, lost]


def test_inputs_of_an_earlier_version_that_were_too_many_are_full() -> None:
    """That version had 32 actions, and counted one more than a limit where something was beyond it."""
    section = save(make_inputs(on=True))
    section["tally"] = np.array([301, 65, 33, 0])
    section = {name: array for name, array in section.items() if name not in ("uses", "waiting", "votes")}
    inputs = make_inputs(on=True)
    assert section["seen"].shape == (33,)
    read_inputs(Stored(section), inputs)
    assert inputs.tally.tolist() == [MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS + 1, 0]


def test_a_copy_has_the_used_part_of_states_only() -> None:
    states = states_of(ensemble_of(learnt(stream(40, actions=3, words=20), members="features,waves,ridge")))
    assert len(pickle.dumps(states)) < 1_000_000
