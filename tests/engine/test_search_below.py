"""In exact mode the search is below explorers of several models, each of which is an event to it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import Workspace
from onlineauto.engine.event.state import LEARNT
from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from onlineauto.learners._kernels import NORM, WEIGHT
from tests.engine.test_workspace import bits, check_bandits, check_rows, named
from tests.naive.blocks import Event, Line, make_block
from tests.naive.exploring import make_exploring
from tests.naive.searching import SearchedBelow
from tests.parity.automl_streams import content
from tests.property.strategies import bandit_events

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.search.journal import Entry

_SEARCH: dict[str, Any] = {
    "vw_exact": True,
    "cb_explore_adf": True,
    "automl": 3,
    "default_lease": 5,
    "fixed_significance_level": True,
    "automl_significance_level": 1.99,
}
_STREAM = content("quick", events=120)
_DECAY: dict[str, Any] = {
    "epsilon_decay": True,
    "min_scope": 10,
    "bonferroni_denominator": 1,
    "epsilon_decay_significance_level": 1.9,
}
_TWINNED: list[dict[str, Any]] = [{"bag": 3}, {"cover": 3}]
_SEVERAL = [_TWINNED[0], _DECAY, *_TWINNED[1:]]
_ABOVE = {"bag", "cover", "epsilon_decay"}


_TWIN: list[dict[str, Any]] = [
    *({**options, "cb_type": cb_type} for options in _TWINNED for cb_type in ("mtr", "dr")),
    {"bag": 2, "cb_type": "ips", "l1": 0.001, "l2": 0.001, "adaptive": True, "greedify": True},
    {"cover": 2, "cb_type": "ips", "nounif": True, "psi": 0.5},
    {"bag": 2, "testonly": True},
]
_LIKED: list[Event] = [
    (
        Line(spans=((b"u", ((n % 3, 1.0),)),), shared=True),
        Line(spans=((b"a", ((8, 1.0),)),), costs=((0, -float(n % 3 == 0), 0.5),) if n % 4 else ()),
        Line(spans=((b"a", ((9, 1.0),)), (b"b", ((n % 5, 0.5),) if n > 9 else ()))),
    )
    for n in range(24)
]
"""Events that bring a namespace late, and of which not all are learnt."""


def _check(options: dict[str, Any], events: list[Event]) -> SearchedBelow:
    """Learn with the twin too, and compare every outcome, weight and config."""
    options = {**_SEARCH, "default_lease": 2, "bit_precision": 9, **options}
    workspace, twin = Workspace(**options), make_exploring(options, kind=SearchedBelow)
    assert isinstance(twin, SearchedBelow)
    outcomes = workspace.learn_block(make_block(events))
    with np.errstate(all="ignore"):
        rows = [twin.event(event) for event in events]
    check_rows(outcomes, rows)
    check_bandits(outcomes, rows)
    assert bits(workspace.weights) == bits(twin.learner.dense(len(workspace.weights)))
    model, live, manager = workspace.learner.model, workspace.searching.slots, twin.manager
    sums = np.array([twin.learner.norm, twin.learner.weight]).T
    np.testing.assert_array_equal(model.lanes[:, [NORM, WEIGHT]], sums)
    assert {
        (slot, policy): model.sums[slot, 2 * policy : 2 * policy + 2].tolist()
        for slot, policy in twin.slot_sums
    } == twin.slot_sums
    assert [list(config.elements) for config in live.configs] == [
        manager.config_of(slot).elements.sorted() for slot in range(len(manager.estimators))
    ]
    assert live.live.updates[1 : len(manager.estimators)].tolist() == [
        each.update_count for each in manager.estimators[1:]
    ]
    assert workspace.searching.n_switches == manager.total_champ_switches
    assert int(live.live.tally[LEARNT]) == twin.n_taught
    return twin


@pytest.mark.parametrize("options", _TWIN, ids=named)
@settings(max_examples=6)
@given(
    events=bandit_events(
        costs=st.sampled_from([-1.0, 0.0, -0.25]), probabilities=st.sampled_from([1.0, 0.5, 0.25])
    )
)
def test_every_step_is_that_of_the_slow_twin(options: dict[str, Any], events: list[Event]) -> None:
    """The first event has namespaces: where none has, Vowpal Wabbit may die of a second champion."""
    _check(options, [_LIKED[0], *events])


@pytest.mark.parametrize("options", _TWIN, ids=named)
def test_the_twin_finds_other_champions_too(options: dict[str, Any]) -> None:
    twin = _check(options, _LIKED)
    assert ("testonly" in options) == (twin.n_taught == 0)
    assert options.get("bag") != 3 or twin.manager.total_champ_switches > 0


def _learnt(**options: Any) -> tuple[Workspace, list[Entry]]:
    """A workspace that has learnt the stream, and what it decided on the way."""
    decisions: list[Entry] = []
    workspace = Workspace(**_SEARCH, **options)
    workspace.on_decision = decisions.append
    return workspace.fit(_STREAM), decisions


def _weights(workspace: Workspace) -> list[bytes]:
    """Numbers of the cells of three lanes that are not 0, wherever these are."""
    table = workspace.weights[:, :3]
    cells, lanes = np.nonzero((table[..., :3] != 0).any(axis=1))
    return sorted(table[cell, :, lane].tobytes() for cell, lane in zip(cells, lanes, strict=True))


def _compared(workspace: Workspace) -> list[NDArray[Any]]:
    """What comparing models of ``--epsilon_decay`` leaves."""
    decay = workspace.learner.task.decay
    return [decay.place, decay.evidence, decay.tally]


def _undated(entry: Entry) -> Entry:
    """A decision, whenever it was taken: an event is not through before all models are."""
    return msgspec.structs.replace(entry, events=0)


def test_explorers_of_several_models_are_above_the_search() -> None:
    assert {name for name, explorer in EXPLORERS.items() if explorer.asks_search} == _ABOVE


@pytest.mark.parametrize(
    ("several", "one"),
    [
        ({"bag": 1, "greedify": True}, {"softmax": True}),
        ({"cover": 1, "cb_type": "ips"}, {"cb_type": "ips"}),
        ({"epsilon_decay": True, "model_count": 1}, {"softmax": True}),
    ],
)
def test_one_model_is_searched_for_as_by_an_explorer_that_has_one(
    several: dict[str, Any], one: dict[str, Any]
) -> None:
    mine, decisions = _learnt(**several)
    other, expected = _learnt(**one)
    assert list(map(_undated, decisions)) == list(map(_undated, expected))
    assert mine.searching.n_switches == other.searching.n_switches > 0
    assert _weights(mine) == _weights(other)


@pytest.mark.parametrize("options", _SEVERAL)
def test_every_model_that_learns_is_an_event_to_the_search(options: dict[str, Any]) -> None:
    workspace, _ = _learnt(**options)
    learnt = workspace.searching.n_learnt
    if "epsilon_decay" in options:
        assert learnt == 3 * 120
    elif "cover" in options:
        assert learnt == 120
    else:
        assert 240 < learnt < 480


@pytest.mark.parametrize("options", _SEVERAL)
def test_blocks_and_models_between_them_change_nothing(options: dict[str, Any]) -> None:
    whole, _ = _learnt(**options)
    events = _STREAM.split(b"\n\n")[:-1]
    apart = Workspace(**_SEARCH, **options)
    for number, event in enumerate(events):
        apart.learn(event + b"\n\n")
        if number == 60:
            file = io.BytesIO()
            apart.save(file)
            apart = Workspace.load(file.getvalue())
    assert apart.weights.tobytes() == whole.weights.tobytes()
    assert apart.search == whole.search
    for mine, others in zip(*(_compared(each) for each in (apart, whole)), strict=True):
        assert mine.tobytes() == others.tobytes()


def test_a_champion_of_bags_predicts_alone_and_others_are_refused() -> None:
    for options in _SEVERAL[:2]:
        several, _ = _learnt(**options)
        file, event = io.BytesIO(), _STREAM.split(b"\n\n")[0] + b"\n\n"
        several.save(file, predict_only=True)
        alone = Workspace.load(file.getvalue(), testonly=True)
        assert alone.predict(event).tobytes() == several.predict(event).tobytes()
    for options in _SEVERAL[2:]:
        with pytest.raises(OptionError, match="has no champion that predicts the same alone"):
            Workspace(**_SEARCH, **options).save(io.BytesIO(), predict_only=True)
