"""Optuna's tests of samplers, with our searchers as samplers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from onlineauto.tune import SEARCHERS, Categorical, Float, Int, Space

optuna = pytest.importorskip("optuna")
# Optuna warns of what is experimental in it.
pytestmark = [pytest.mark.lane("ci"), pytest.mark.filterwarnings("ignore")]

from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402
from optuna.search_space import IntersectionSearchSpace  # noqa: E402
from optuna.testing import pytest_samplers as theirs  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from onlineauto.tune import Parameter  # noqa: E402


def parameter_of(distribution: Any) -> Parameter:
    """Return a parameter; a step makes it the number of steps from the lower bound."""
    if isinstance(distribution, CategoricalDistribution):
        return Categorical(list(range(len(distribution.choices))))
    if distribution.step not in (None, 1) or (
        isinstance(distribution, FloatDistribution) and distribution.step is not None
    ):
        return Int(0, round((distribution.high - distribution.low) / distribution.step))
    kind = Float if isinstance(distribution, FloatDistribution) else Int
    return kind(distribution.low, distribution.high, log=distribution.log)


def to_theirs(distribution: Any, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    if distribution.step not in (None, 1) or (
        isinstance(distribution, FloatDistribution) and distribution.step is not None
    ):
        return type(distribution.low)(min(distribution.low + value * distribution.step, distribution.high))
    return value


def to_ours(distribution: Any, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    if isinstance(parameter_of(distribution), Int) and distribution.step not in (None, 1):
        return round((value - distribution.low) / distribution.step)
    return round(value) if isinstance(parameter_of(distribution), Int) else value


class SearcherSampler(optuna.samplers.BaseSampler):  # type: ignore[misc, name-defined]
    """A sampler whose configs come from a searcher that has learnt all complete trials."""

    def __init__(self, name: str) -> None:
        self._name, self._rng = name, np.random.default_rng(0)
        self._space = IntersectionSearchSpace()

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
        del trial
        space: dict[str, Any] = self._space.calculate(study)
        return space

    def sample_relative(self, study: Any, trial: Any, search_space: dict[str, Any]) -> dict[str, Any]:
        del trial
        if not search_space:
            return {}
        space = Space({name: parameter_of(value) for name, value in search_space.items()})
        searcher = SEARCHERS[self._name]()
        searcher.begin(space, seed=0)
        signs = [-1 if each.name == "MAXIMIZE" else 1 for each in study.directions]
        number = 0
        for each in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)):
            config = {name: to_ours(search_space[name], each.params[name]) for name in search_space}
            if space.check(config) and np.isfinite(each.values).all():
                number += 1
                searcher.on_ask(config)
                losses = [sign * value for sign, value in zip(signs, each.values, strict=True)]
                if len(losses) > 1:
                    searcher.on_losses(config, 1, losses)
                else:
                    searcher.on_result(config, 1, losses[0])
        config = searcher.propose(max(number, 20), self._rng) or {}
        return {name: to_theirs(search_space[name], value) for name, value in config.items()}

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        del study, trial, param_name
        return to_theirs(param_distribution, parameter_of(param_distribution).draw(self._rng))


class _Sampled(theirs.BasicSamplerTestCase, theirs.RelativeSamplerTestCase):
    name = ""

    @pytest.fixture
    def sampler(self) -> Callable[[], SearcherSampler]:
        pytest.importorskip({"cmaes": "cmaes", "quasi": "scipy"}.get(self.name, "numpy"))
        return lambda: SearcherSampler(self.name)


class TestTpe(_Sampled, theirs.MultiObjectiveSamplerTestCase):
    name = "tpe"


class TestRandom(_Sampled, theirs.MultiObjectiveSamplerTestCase):
    name = "random"


class TestQuasi(_Sampled, theirs.MultiObjectiveSamplerTestCase):
    name = "quasi"


class TestGp(_Sampled):
    name = "gp"


class TestCmaes(_Sampled):
    name = "cmaes"
