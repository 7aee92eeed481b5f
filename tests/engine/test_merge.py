"""Merging of models: sums, averages, and models that cannot be merged."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.errors import OptionError
from onlineauto.workspace.merge import merge_workspaces
from tests.learners.model_view import gradients_of, lanes_of, shared_of, weights_of

LINES = [f"{i % 3} |a x{i % 4}:{0.5 + i % 2} |b y{i % 5}" for i in range(60)]
EVENTS = [f"shared |u {i % 3}\n0:{-(i % 2)}:0.5 |i a{i % 4}\n|i b\n" for i in range(40)]


def test_model_merged_with_itself_predicts_the_same() -> None:
    one = Workspace(quadratic="ab").fit(LINES)
    both = merge_workspaces([one, copy.deepcopy(one)])
    assert both.predict(LINES[7]) == pytest.approx(one.predict(LINES[7]), rel=1e-6)
    assert lanes_of(both).weight[0] == 2 * lanes_of(one).weight[0]
    assert lanes_of(both).norm[0] == 2 * lanes_of(one).norm[0]
    assert shared_of(both).t == 120


def test_merging_does_not_change_the_models() -> None:
    models = [Workspace(l1=1e-4).fit(LINES[k::2]) for k in range(2)]
    before = [model.weights.tobytes() for model in models]
    merge_workspaces(models)
    assert [model.weights.tobytes() for model in models] == before


def test_weights_are_averaged_by_sums_of_squared_gradients() -> None:
    one, other = Workspace(noconstant=True).fit(LINES[:20]), Workspace(noconstant=True).fit(LINES[20:])
    both = merge_workspaces([one, other])
    a = np.stack([gradients_of(model)[:, 0] for model in (one, other)]).astype(np.float64)
    w = np.stack([weights_of(model)[:, 0] for model in (one, other)])
    seen = a.sum(axis=0) > 0
    average = (a * w).sum(axis=0)[seen] / a.sum(axis=0)[seen]
    np.testing.assert_allclose(weights_of(both)[seen, 0], average, rtol=1e-5)
    assert not both.weights[~seen].any()


def test_weights_of_sgd_are_averaged_by_numbers_of_events() -> None:
    one = Workspace(sgd=True, learning_rate=0.1).fit(["1 |a x"] * 30)
    other = Workspace(sgd=True, learning_rate=0.1).fit(["0 |a x"] * 10)
    both = merge_workspaces([one, other])
    np.testing.assert_allclose(weights_of(both), 0.75 * weights_of(one) + 0.25 * weights_of(other))
    np.testing.assert_allclose(
        weights_of(merge_workspaces([one, other], learnt=[1, 3])),
        0.25 * weights_of(one) + 0.75 * weights_of(other),
    )


def test_only_changes_since_the_base_are_merged() -> None:
    base = Workspace().fit(LINES[:20])
    one = copy.deepcopy(base).fit(LINES[20:40])
    idle = copy.deepcopy(base)
    np.testing.assert_allclose(
        merge_workspaces([one, idle], base=base).weights[:, :3], one.weights[:, :3], rtol=1e-4, atol=1e-6
    )


def test_merged_model_continues_to_learn() -> None:
    parts = [Workspace(cb_explore_adf=True, quadratic="ui", squarecb=True).fit(EVENTS[k::2]) for k in (0, 1)]
    both = merge_workspaces(parts).fit(EVENTS)
    assert np.isfinite(both.predict(EVENTS[0])).all()
    explored = both.learner.task.exploration.counts[0]
    assert explored == 2 * len(EVENTS)


@pytest.mark.parametrize("options", [{"quadratic": "::"}, {"l1": 1e-3}, {"bag": 2}], ids=str)
def test_merged_models_of_many_kinds_predict_probabilities(options: dict[str, Any]) -> None:
    models = [Workspace(cb_explore_adf=True, **options).fit(EVENTS[k::3]) for k in range(3)]
    assert merge_workspaces(models).predict(EVENTS[0]).sum() == pytest.approx(1)


def test_models_that_cannot_be_merged_are_rejected() -> None:
    one = Workspace(quadratic="ab").fit(LINES[:5])
    with pytest.raises(OptionError, match="merge takes two models or more"):
        merge_workspaces([one])
    with pytest.raises(OptionError, match="--quadratic aa"):
        merge_workspaces([one, Workspace(quadratic="aa")])
    with pytest.raises(OptionError, match="one of ''"):
        merge_workspaces([one, one], base=Workspace())
    with pytest.raises(OptionError, match="none has learnt a labelled event"):
        merge_workspaces([Workspace(sgd=True), Workspace(sgd=True)])
    search = Workspace(cb_explore_adf=True, automl=2)
    with pytest.raises(OptionError, match="--automl"):
        merge_workspaces([search, search])
    decaying = Workspace(cb_explore_adf=True, epsilon_decay=True)
    with pytest.raises(OptionError, match="--epsilon_decay"):
        merge_workspaces([decaying, decaying])


SLOT = "ccb shared |u a\nccb action |i x\nccb action |i y\nccb slot 1:-1:0.5 |"
SLOTS = f"{SLOT}p t\nccb slot |p s\n"


def test_merged_model_distinguishes_slots_if_one_of_the_models_does() -> None:
    base = Workspace(ccb_explore_adf=True).fit([SLOT])
    one, other = copy.deepcopy(base).fit([SLOTS] * 5), copy.deepcopy(base).fit([SLOT] * 5)
    for models in ([one, other], [other, one]):
        assert merge_workspaces(models, base=base).state()["slots"] == {"told": True}
    assert merge_workspaces([other, other], base=base).state()["slots"] == {"told": False}


def test_exact_models_with_and_without_slots_are_rejected() -> None:
    base = Workspace(ccb_explore_adf=True, vw_exact=True).fit([SLOT])
    one, other = copy.deepcopy(base).fit([SLOTS]), copy.deepcopy(base).fit([SLOT])
    with pytest.raises(OptionError, match="several slots"):
        merge_workspaces([one, other])
    with pytest.raises(OptionError, match="from a base"):
        merge_workspaces([one, one], base=base)
    merge_workspaces([other, other], base=base)
