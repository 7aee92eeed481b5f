"""Parameters with a prior: values that are believed to be good."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import OptionError
from onlineauto.tune import ActiveTrial, Categorical, Float, Int, Space, Study, create_study

SPACE = Space(
    {
        "rate": Float(1e-4, 1, log=True, prior=0.01, spread=0.1),
        "depth": Int(1, 12, prior=3),
        "kind": Categorical(["a", "b", "c", "d"], prior="b", spread=0.4),
        "free": Float(0, 1),
        "only": Float(0, 1, when={"kind": "a"}, prior=0.5),
    }
)


def test_a_declaration_contains_the_prior_only_if_there_is_one() -> None:
    assert Float(0, 1).described() == {"type": "float", "low": 0, "high": 1, "log": False}
    assert "prior" not in SPACE.described()["free"]
    assert Space(SPACE.described()).described() == SPACE.described()
    toml = "kind = {type = 'choice', values = ['a', 'b'], prior = 'b', spread = 0.2}"
    assert Space.from_toml(toml).parameters["kind"] == Categorical(["a", "b"], prior="b", spread=0.2)
    assert Float(0, 1, prior=float(np.float32(0.5))).prior == 0.5
    assert Space({"n": {"type": "int", "low": 0, "high": 9, "prior": np.int64(3)}}).parameters["n"].prior == 3


def test_draws_follow_the_prior() -> None:
    rng = np.random.default_rng(0)
    configs = [SPACE.draw(rng) for _ in range(2000)]
    codes = [SPACE.parameters["rate"].encode(config["rate"])[0] for config in configs]
    assert abs(np.mean(codes) - 0.5) < 0.01
    assert abs(np.std(codes) - 0.1) < 0.01
    words = [config["kind"] for config in configs]
    assert abs(words.count("b") / 2000 - 0.7) < 0.05
    assert abs(words.count("d") / 2000 - 0.1) < 0.03
    assert all(SPACE.check(config) == config for config in configs)
    assert {"only" in config for config in configs} == {True, False}


def test_density_is_that_of_the_draws() -> None:
    rate, kind = SPACE.parameters["rate"], SPACE.parameters["kind"]
    assert rate.log_prior(0.01) == kind.log_prior("b") == SPACE.parameters["free"].log_prior(0.3) == 0
    assert rate.log_prior(0.001) == pytest.approx(-0.5 * (0.25 / 0.1) ** 2)
    assert kind.log_prior("d") == pytest.approx(math.log(0.1 / 0.7))
    assert Float(0, 1, prior=0, spread=1e-9).log_prior(1) == -25
    assert SPACE.log_prior({"rate": 0.001, "kind": "d"}) == rate.log_prior(0.001) + kind.log_prior("d")


@pytest.mark.parametrize("searcher", ["tpe", "random", "gp", "cmaes"])
def test_configs_near_the_prior_are_tried_first(searcher: str) -> None:
    pytest.importorskip({"cmaes": "cmaes"}.get(searcher, "numpy"))
    near = []
    for prior in (None, 0.0004):
        space = Space({"rate": Float(1e-4, 1, log=True, prior=prior, spread=0.1), "free": Float(0, 1)})
        study = Study(space, "fifo", searcher, max_resource=1, max_trials=20)
        study.run(lambda config: config["free"])
        codes = [space.encode(trial.config)[0] for trial in study.trials]
        near.append(sum(abs(code - 0.15) < 0.2 for code in codes))
    assert near[1] > near[0]
    assert study.trials[0].config["rate"] == 0.0004 or searcher == "cmaes"
    assert study.trials[0].config["free"] != 0.5


def test_tpe_overcomes_a_wrong_prior() -> None:
    study = Study({"x": Float(0, 1, prior=0, spread=0.1)}, "fifo", max_resource=1, max_trials=60)
    best = study.run(lambda config: abs(config["x"] - 0.9))
    assert best is not None
    assert best.value is not None
    assert best.value < 0.02


def test_hyperband_begins_with_the_prior_and_repeats_its_log(url: str) -> None:
    study = Study(SPACE, max_resource=9, max_trials=20, storage=url)
    study.run(lambda config, resource: config["rate"] + 1 / resource)
    assert study.trials[0].config["rate"] == 0.01
    assert Study.load("study", storage=url).trials == study.trials
    with pytest.raises(OptionError, match="exists already with space"):
        Study(Space({"rate": Float(1e-4, 1, log=True)}), max_resource=9, storage=url)


def test_an_objective_suggests_with_a_prior() -> None:
    def objective(trial: ActiveTrial) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1, log=True, prior=0.02)
        depth = trial.suggest_int("depth", 1, 9, prior=4)
        kind = trial.suggest_categorical("kind", ["a", "b", "c"], prior="c")
        return rate + depth + float(kind == "a")

    study = create_study()
    study.optimize(objective, n_trials=20)
    assert study.trials[0].config == {"rate": 0.02, "depth": 4, "kind": "c"}
    assert study.space.parameters["rate"].prior == 0.02
    with pytest.raises(OptionError, match="a parameter keeps its range"):
        study.optimize(lambda trial: trial.suggest_float("rate", 1e-4, 1, log=True), n_trials=1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Float(0, 1, prior=2), "prior = 2 is outside the range"),
        (lambda: Int(0, 9, prior="a"), "prior = 'a' is outside"),  # type: ignore[arg-type]
        (lambda: Categorical(["a"], prior="b"), "prior = 'b' is outside"),
        (lambda: Float(0, 1, prior=0.5, spread=0), "spread = 0: give a number above 0 and up to 1"),
        (lambda: Float(0, 1, prior=0.5, spread=float("nan")), "spread = nan"),
        (lambda: Study(SPACE, searcher="quasi"), "searcher='quasi' uses no prior"),
        (lambda: Study(SPACE, searcher="grid"), "searcher='grid' uses no prior"),
    ],
)
def test_a_prior_that_has_no_meaning_is_rejected(make: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        make()
