"""``hand_over``: the best trial becomes a challenger, and the test of the search decides."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.errors import OptionError
from onlineauto.learners.model import apply_penalties
from onlineauto.tune import Float, Study
from onlineauto.tune.live import LiveLearner, hand_over, tune_stream
from onlineauto.tune.live.live_learner import model_of
from onlineauto.workspace.warm_start import challenge
from tests.tune.live.streams import bandits, numbers

pytestmark = pytest.mark.lane("ci")

SEARCHED: dict[str, Any] = {"search": "interactions,learning_rate,power_t"}


def study_of(events: list[str], base: str = "", **options: Any) -> Study:
    return tune_stream(events, base, scheduler="race", max_trials=15, **options)


@pytest.mark.parametrize(("make", "base"), [(numbers, ""), (bandits, "--cb_explore_adf")])
def test_the_winner_is_a_challenger_with_its_flags_and_its_weights(
    make: Callable[[int], list[str]], base: str
) -> None:
    events = make(900)
    study = study_of(events[:600], base)
    search = Workspace(automl=3, **SEARCHED, cb_explore_adf=bool(base)).fit(events[:600])
    before = search.predict(events[0])
    entries: list[object] = []
    search.observe(entries.append)
    live = hand_over(study, search)
    assert live in (1, 2)
    winner = model_of(study.saved(study.best_trial.number))[0]
    [lane] = search.learner.lanes_of(live)
    assert (search.weights[:, :, lane] == winner.weights[:, :, 0]).all()
    settings = dict(search.searching.live_configs.configs[live].settings)
    assert settings.get("learning_rate", 0.5) == pytest.approx(
        study.best_trial.config["learning_rate"], rel=1e-6
    )
    if base:  # a mix of all live configs predicts single lines
        assert (search.predict(events[0]) == before).all()
    assert any("handed over: trial" in str(entry) for entry in entries)
    again = Workspace.load(_saved(search))
    assert (again.fit(events[600:]).weights == search.fit(events[600:]).weights).all()


def _saved(search: Workspace) -> bytes:
    file = io.BytesIO()
    search.save(file)
    return file.getvalue()


def test_a_handed_over_trial_continues_to_learn() -> None:
    events = numbers(900)
    study = study_of(events[:600], search=["learning_rate"])
    search = Workspace(automl=2, search="learning_rate", lease=10**6, interactions=[]).fit(events[:600])
    live = hand_over(study, search)
    alone = model_of(study.saved(study.best_trial.number))[0].fit(events[600:630])
    search.fit(events[600:630])
    [lane] = search.learner.lanes_of(live)
    assert np.allclose(search.weights[:, 0, lane], alone.weights[:, 0, 0], atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"l2": 1e-3},
        {"l1": 1e-4},
        {"bag": 3},
        {"cover": 2},
        {"regcb": True},
        {"squarecb": True, "epsilon": 0.0},
    ],
)
def test_all_parts_of_a_model_are_handed_over(options: dict[str, Any]) -> None:
    events = bandits(600)
    other = Workspace(cb_explore_adf=True, quadratic="uZ", **options).fit(events)
    kept = {name: value for name, value in options.items() if name not in ("l1", "l2")}
    search = Workspace(cb_explore_adf=True, automl=3, search="interactions,l1,l2", lease=10**6, **kept)
    live = challenge(search.fit(events[:300]), other)
    lanes, champion = search.learner.lanes_of(live), other.learner.champion_lanes()
    model = other.learner.model
    weights = apply_penalties(model.weights[:, champion], model.lanes[model.penalised[champion]])
    assert (search.weights[:, 0][..., lanes] == weights).all()
    assert (search.weights[:, 1:][..., lanes] == model.statistics[..., champion]).all()
    search.fit(events[300:])  # the others learn as before, and so does the newcomer
    assert not (search.weights[:, 0][..., lanes] == weights).all()


def test_events_since_the_study_are_learnt_first() -> None:
    events = numbers(900)
    study = study_of(events[:600])
    search = Workspace(automl=2, **SEARCHED).fit(events)
    live = hand_over(study, search, since=events[600:])
    alone = model_of(study.saved(study.best_trial.number))[0].fit(events[600:])
    [lane] = search.learner.lanes_of(live)
    assert (search.weights[:, :, lane] == alone.weights[:, :, 0]).all()


def test_a_better_challenger_becomes_the_champion() -> None:
    events = numbers(4000)
    study = study_of(events[:1500], search=["interactions"])
    search = Workspace(automl=2, search="interactions", lease=10**6).fit(["0 |a x0 |b x0 |c x0"] * 20)
    hand_over(study, search)
    search.fit(events[1500:])
    crossed = {
        tuple(name.encode() for name in names.split("*"))
        for names, used in study.best_trial.config.items()
        if used
    }
    assert (b"a", b"b") in crossed
    assert search.searching.n_switches >= 1
    assert set(search.searching.interactions(0)) == crossed


def test_a_champion_that_becomes_worse_is_rolled_back() -> None:
    """At first the best action changes often, and a high rate wins; later it is constant, with noise."""
    draw = random.Random(1)
    changing = [f"{(i // 20) % 2} |a x" for i in range(2000)]
    constant = [f"{0.5 + draw.gauss(0, 1):.3f} |a x" for _ in range(6000)]
    search = Workspace(automl=2, search="learning_rate", learning_rate=0.01, power_t=0, lease=10**7)
    search.fit(changing[:40])
    assert challenge(search, Workspace(learning_rate=3, power_t=0).fit(changing)) == 1
    champions = [_rate(search)]
    for begin in range(0, len(changing), 10):
        if search.searching.n_switches:
            break
        search.fit(changing[begin : begin + 10])
    champions.append(_rate(search))
    search.fit(constant)
    champions.append(_rate(search))
    assert champions[:2] == [0.01, 3]
    assert (("learning_rate", 3.0),) in [change.before_settings for change in search.searching.changes]
    assert search.searching.changes[1].after_settings == ()


def _rate(search: Workspace) -> object:
    return dict(search.searching.live_configs.configs[0].settings).get("learning_rate", 0.01)


def test_a_trial_becomes_the_champion_of_a_new_search() -> None:
    events = bandits(600)
    study = study_of(events, "--cb_explore_adf")
    search = Workspace(automl=4, cb_explore_adf=True, epsilon=0.05, **SEARCHED)
    assert hand_over(study, search) == 0
    winner = model_of(study.saved(study.best_trial.number))[0]
    assert np.allclose(search.predict(events[3]), winner.predict(events[3]), atol=1e-6)


def test_a_trial_with_unsupported_flags_is_rejected() -> None:
    events = numbers(600)
    study = study_of(events)
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({}, "needs a model that searches"),
        ({"automl": 1, **SEARCHED}, "--automl 2 or more"),
        ({"automl": 2, "search": "interactions,learning_rate"}, "add power_t to search="),
        ({"automl": 2, "bit_precision": 12, **SEARCHED}, "hash_bits=18"),
    )
    for options, message in refused:
        search = Workspace(**options).fit(events[:300])
        before = _saved(search)
        with pytest.raises(OptionError, match=message):
            hand_over(study, search)
        assert _saved(search) == before


def test_a_study_without_a_winner_has_nothing_to_hand_over() -> None:
    search = Workspace(automl=2)
    study = Study({"learning_rate": Float(0.1, 1)})
    with pytest.raises(OptionError, match="no trial with a value"):
        hand_over(study, search)
    with pytest.raises(OptionError, match="there is no trial 7"):
        hand_over(study, search, trial=7)
    study.run(lambda config: config["learning_rate"], jobs=3)
    with pytest.raises(OptionError, match="no checkpoint of a live learner"):
        hand_over(study, search)


def test_a_learner_of_a_custom_study_can_be_handed_over() -> None:
    events = numbers(300)
    study = Study({"learning_rate": Float(0.1, 1)}, min_resource=30, max_resource=270, max_trials=6)
    best = study.run(LiveLearner(events))
    assert best is not None
    search = Workspace(automl=2).fit(events)
    assert hand_over(study, search, trial=best.number) == 1
