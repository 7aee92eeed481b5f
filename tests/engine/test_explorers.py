"""The engine with every explorer; tests/parity compares exact mode with the `vowpalwabbit` package."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.records.task import DecayTally
from onlineauto.errors import OptionError
from onlineauto.explorers import EXPLORERS
from tests.engine.test_searching import stream
from tests.learners.model_view import gradients_of, lanes_of
from tests.naive.explorers import guess
from tests.naive.explorers import rnd as naive_rnd
from tests.naive.hashing import hash_name
from tests.property.snapshot import named

Options = dict[str, Any]


@pytest.mark.parametrize("kind", [{"cb": 2}, {"cb_adf": True}])
@pytest.mark.parametrize(
    "options",
    [{"cover": 3}, {"bag": 3}, {"rnd": 2}, {"epsilon_decay": True, "model_count": 64}, {"regcb": True}],
)
@pytest.mark.parametrize("search", [{}, {"automl": 2, "default_lease": 2}])
def test_options_of_explorers_have_no_effect_without_exploration(
    kind: dict[str, Any], options: dict[str, Any], search: dict[str, Any]
) -> None:
    text = "1:-1:0.5 |a x\n2:0:0.5 |b y\n" if "cb" in kind else "shared |u x\n0:-1:0.5 |a x\n|a y\n\n"
    plain, asked = Workspace(**kind, **search), Workspace(**kind, **search, **options)
    plain.fit(20 * text.encode())
    asked.fit(20 * text.encode())
    assert (plain.weights == asked.weights).all()


NATIVE: list[Options] = [
    {"first": 50},
    {"softmax": True, "lambda_": 5.0},
    {"squarecb": True},
    {"squarecb": True, "elim": True, "epsilon": 0.1},
    {"scaled_squarecb": True},
    {"regcb": True},
    {"regcbopt": True},
    {"synthcover": True},
    {"bag": 3},
    {"bag": 2, "cb_type": "dr"},
    {"cover": 3},
    {"cover": 2, "cb_type": "dr", "nounif": True, "epsilon": 0.1},
    {"rnd": 3},
    {"rnd": 2, "cb_type": "dr", "epsilon": 0.1, "rnd_alpha": 0.5},
    {"epsilon_decay": True},
    {"epsilon_decay": True, "model_count": 2, "cb_type": "dr", "min_scope": 10, "initial_epsilon": 0.5},
    {"epsilon_decay": True, "min_scope": 50, "challenger_epsilon": True, "cb_type": "ips"},
]


def pmfs(workspace: Workspace, events: list[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Probabilities of all actions of all events, by action."""
    return np.array([workspace.learn(event) for event in events])


SEARCHED = [*((options, None) for options in NATIVE), *((options, 4) for options in NATIVE)]


def test_every_explorer_is_in_the_cases() -> None:
    flags = {flag for options in NATIVE for flag in options}
    assert all(flags & set(explorer.flags) for explorer in EXPLORERS.values() if explorer.flags)


@pytest.mark.parametrize(
    ("options", "automl"), SEARCHED, ids=lambda each: named(each) if isinstance(each, dict) else str(each)
)
def test_probabilities_sum_to_1_and_good_actions_are_found(options: Options, automl: int | None) -> None:
    events = stream(600)
    search: Options = {"automl": automl, "default_lease": 50} if automl else {"quadratic": ["::"]}
    workspace = Workspace(cb_explore_adf=True, **search, **options)
    found = pmfs(workspace, events)
    assert found.min() >= 0
    assert np.abs(found.sum(axis=1, dtype=float) - 1).max() < 1e-5
    good = [0 if "|User tom" in event else 2 for event in events[-100:]]
    of_good = found[-100:][np.arange(100), good].mean()
    assert of_good > (0.4 if options.get("synthcover") or options.get("regcb") else 0.45), of_good
    if automl:
        assert workspace.searching.live_configs.arrays.n == automl
        assert workspace.searching.live_configs.arrays.schedule.updates[1:].all()


@pytest.mark.parametrize("options", NATIVE, ids=named)
def test_copy_continues_like_the_original(options: Options) -> None:
    events = stream(60)
    workspace = Workspace(cb_explore_adf=True, quadratic=["::"], **options)
    pmfs(workspace, events[:30])
    twin = copy.deepcopy(workspace)
    np.testing.assert_array_equal(pmfs(twin, events[30:]), pmfs(workspace, events[30:]))


@pytest.mark.parametrize("options", NATIVE, ids=named)
def test_predicting_changes_nothing(options: Options) -> None:
    events = stream(40, seed=3)
    one, other = (Workspace(cb_explore_adf=True, quadratic=["::"], **options) for _ in range(2))
    for event in events:
        before = other.predict(event)
        np.testing.assert_array_equal(before, other.predict(event))
        np.testing.assert_array_equal(one.learn(event), before)
        other.learn(event)


def test_random_network_distillation_prefers_new_actions() -> None:
    """All costs are equal, and one action has been learnt hundreds of times."""
    workspace = Workspace(cb_explore_adf=True, rnd=5, noconstant=True)
    for _ in range(300):
        workspace.learn("0:0:0.5 |a x\n|a y\n\n")
    learnt, new = workspace.predict("|a x\n|a y\n\n")
    assert new > 1.5 * learnt
    assert workspace.predict("|a x\n|a x\n\n").tolist() == [0.5, 0.5]


def test_guesses_depend_on_hashes_of_names() -> None:
    actions = [[("x", 1.0), ("y", 2.0)], [("y", 1.0)], [("z", -0.5), ("x", 0.25)]]
    text = "".join("|a " + " ".join(f"{name}:{x}" for name, x in action) + "\n" for action in actions)
    workspace = Workspace(cb_explore_adf=True, rnd=3, noconstant=True, random_seed=7, rnd_invlambda=2.0)
    spread, seed = np.sqrt(np.float32(2)), hash_name(b"a", 0)
    bonuses = []
    for action in actions:
        features = [(hash_name(name.encode(), seed), np.float32(x)) for name, x in action]
        guesses = [guess(features, seed=7, member=member, spread=spread) for member in (1, 2, 3)]
        bonuses.append(np.sqrt(sum((each * each for each in guesses), np.float32(0)) / np.float32(3)))
    expected = naive_rnd([np.float32(0)] * 3, bonuses, np.exp)  # nothing is learnt: all cost the same
    np.testing.assert_allclose(workspace.predict(text + "\n"), expected, rtol=1e-5)


def test_guesses_of_members_and_seeds_differ() -> None:
    def pmf(**options: Any) -> list[float]:
        workspace = Workspace(cb_explore_adf=True, noconstant=True, **options)
        return workspace.predict("|a x\n|a y\n\n").tolist()  # type: ignore[no-any-return]

    found = [pmf(rnd=rnd, random_seed=seed) for rnd in (1, 2) for seed in (0, 1)]
    assert len({tuple(each) for each in found}) == 4


def decaying(events: int, *, turned: bool, **options: Any) -> Workspace:
    """Learn events of which the first action is the better one and, if it has `turned`, later the worse."""
    options = {"epsilon_decay": True, "quadratic": [], "min_scope": 50, **options}
    workspace = Workspace(cb_explore_adf=True, noconstant=True, learning_rate=0.05, **options)
    for event in range(events):
        logged, good = event % 2, int(turned and event > events // 2)
        labels = ["", ""]
        labels[logged] = f"0:{-float(logged == good)}:0.5 "
        workspace.learn(f"{labels[0]}|a x\n{labels[1]}|a y\n\n")
    return workspace


def test_epsilon_decreases_with_the_events_of_the_champion() -> None:
    begun, learnt = decaying(0, turned=False), decaying(999, turned=False)
    assert begun.predict("|a x\n|a y\n\n").tolist() == [0.5, 0.5]
    assert learnt.predict("|a x\n|a y\n\n").tolist() == pytest.approx([0.95, 0.05])
    assert learnt.learner.task.decay.tally[DecayTally.PROMOTED] == 0
    assert learnt.learner.task.decay.tally[DecayTally.DROPPED] > 5


def test_younger_model_is_promoted_after_a_change_of_the_stream() -> None:
    workspace = decaying(6000, turned=True, adaptive=True)
    assert workspace.learner.task.decay.tally[DecayTally.PROMOTED] > 0
    assert workspace.predict("|a x\n|a y\n\n")[1] > 0.5


@pytest.mark.parametrize("exact", [True, False])
def test_only_exact_mode_keeps_sums_of_the_replaced_model(exact: bool) -> None:
    options: Options = {"epsilon_decay": True, "model_count": 2, "min_scope": 0, "vw_exact": exact}
    workspace = Workspace(cb_explore_adf=True, **options)
    for _ in range(2):
        workspace.learn(EVENT)
    place, model = workspace.learner.task.decay.place[0], workspace.learner.model
    assert workspace.learner.task.decay.tally[DecayTally.DROPPED] > 0
    assert not workspace.weights[:, :, place].any()
    assert bool(lanes_of(workspace).weight[place]) == exact
    assert bool(model.sums[0, 2 * place]) == exact


def test_rewards_outside_their_range_are_counted() -> None:
    def outside(**options: Any) -> int:
        workspace = Workspace(cb_explore_adf=True, epsilon_decay=True, **options)
        workspace.learn(EVENT)
        return int(workspace.learner.task.decay.tally[DecayTally.OUTSIDE_RANGE])

    assert [outside(), outside(cost_range="0,1"), outside(reward_as_cost=True)] == [1, 0, 0]


EVENT = "|a x\n|a y\n0:0.5:0.1 |a z\n\n"


@pytest.mark.parametrize("options", [{"squarecb": True}, {"regcb": True}], ids=named)
def test_native_regression_has_no_importance_weights(options: Options) -> None:
    """VW leaves the last action out of its loop; its gradients are then ten times as large here."""
    last = "|a x\n|a y\n0:0.5:0.1 |a z\n\n"
    first = "0:0.5:0.1 |a z\n|a x\n|a y\n\n"
    sums = []
    for exact in (False, True):
        for event in (last, first):
            workspace = Workspace(cb_explore_adf=True, noconstant=True, vw_exact=exact, **options)
            workspace.learn(event)
            sums.append(float(gradients_of(workspace).sum()))
    assert sums[0] == sums[1] == sums[3]
    assert sums[2] == pytest.approx(10 * sums[0])


def test_squarecb_divides_among_the_remaining_actions() -> None:
    """No action is eliminated before the first event; VW gives them the probabilities -1, 1 and 1."""
    exact = Workspace(cb_explore_adf=True, squarecb=True, elim=True, vw_exact=True).predict(EVENT)
    native = Workspace(cb_explore_adf=True, squarecb=True, elim=True).predict(EVENT)
    assert exact.tolist() == [-1, 1, 1]
    assert native.round(4).tolist() == np.full(3, 1 / 3, np.float32).round(4).tolist()


def test_regcbopt_divides_the_probability_among_equal_actions() -> None:
    exact = Workspace(cb_explore_adf=True, regcb=True, regcbopt=True, vw_exact=True).predict(EVENT)
    native = Workspace(cb_explore_adf=True, regcbopt=True).predict(EVENT)
    assert exact.tolist() == [1, 1, 1]
    assert native.round(4).tolist() == np.full(3, 1 / 3, np.float32).round(4).tolist()


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("drawn", [True, False])
def test_only_exact_synthetic_cover_sees_the_cost_before_it_predicts(exact: bool, drawn: bool) -> None:
    def first_pmf(event: str) -> list[float]:
        options: Options = {"synthcover": True, "initial_weight": 0.5, "cb_sample": drawn, "vw_exact": exact}
        return sorted(Workspace(cb_explore_adf=True, **options).learn(event).tolist())

    told, untold = first_pmf("0:5:0.5 |a x w\n|a y\n\n"), first_pmf("|a x w\n|a y\n\n")
    assert (told != pytest.approx(untold, abs=1e-5)) == (exact and drawn)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"softmax": True, "bag": 2}, "--softmax and --bag exclude each other"),
        ({"squarecb": True, "cb_type": "dr"}, "--squarecb cannot learn by --cb_type dr; it can by mtr"),
        ({"cover": 2, "cb_type": "dm"}, "--cover cannot learn by --cb_type dm; it can by mtr, ips, dr"),
        ({"regcb": True, "epsilon": 0.1}, "--epsilon has no effect with --regcb"),
        ({"softmax": True, "first_only": True}, "--first_only has no effect with --softmax"),
        ({"regcb": True, "cb_min_cost": 1.0, "cb_max_cost": 0.0}, "--cb_min_cost 1.0 is above"),
        (
            {"squarecb": True, "automl": 2, "search": "cb_type"},
            "--search cannot have cb_type with --squarecb",
        ),
        ({"epsilon_decay": True, "cost_range": "1,0"}, "--cost_range cannot be 1,0; it takes two numbers"),
        ({"epsilon_decay": True, "epsilon": 0.1}, "--epsilon has no effect with --epsilon_decay without"),
        ({"epsilon_decay": True, "cost_range": "0,1", "vw_exact": True}, "--cost_range has no effect with"),
        ({"epsilon_decay": True, "cb_sample": True, "vw_exact": True}, "--cb_sample with --epsilon_decay"),
    ],
)
def test_invalid_options_are_rejected(options: Options, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        Workspace(cb_explore_adf=True, **options)
