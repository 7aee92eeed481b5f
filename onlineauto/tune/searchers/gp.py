"""``GpSearcher``: proposes the config with the largest expected improvement under a Gaussian process."""

from __future__ import annotations

import warnings
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError, install_hint
from onlineauto.tune.searchers.observations import Observations
from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.spaces import Categorical

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.spaces import Config, Space

_RANDOM = 1000
_NEAR = 200
_FIT_STEPS = 25
_STEPS = (0.1, 0.02, 0.004)
"""Standard deviations of the steps around the best candidates so far, one round each."""


class GpSearcher(Searcher):
    """Proposes configs by a Gaussian process, for budgets of up to a few hundred trials.

    The process is scikit-learn's, with a Matérn kernel of smoothness 5/2, one length scale for each parameter
    and learnt noise. Words are coded as one input each. A running trial counts as if it had the mean that the
    process predicts for it. The cost of a proposal grows with the cube of the number of trials.
    """

    name = "gp"

    def __init__(self, startup: int = 10, most: int = 200) -> None:
        if startup < 2 or most < 2:
            raise OptionError(f"startup = {startup}, most = {most}: valid are whole numbers from 2 on")
        self.options = {"startup": startup, "most": most}
        self._startup, self._most = startup, most

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._observations = Observations()

    def on_ask(self, config: Config) -> None:  # noqa: D102
        self._observations.begin(config)

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: D102
        self._observations.replace(before, config)
        return True

    def on_result(self, config: Config, resource: int, loss: float) -> None:  # noqa: D102
        self._observations.result(config, resource, loss)

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: D102
        try:
            from threadpoolctl import threadpool_limits
        except ImportError as error:
            raise OptionError(f"searcher='gp' needs scikit-learn: {install_hint('sklearn')}") from error
        with threadpool_limits(1):  # matrices are small
            return self._propose(number, rng)

    def _propose(self, number: int, rng: np.random.Generator) -> Config:
        seen = self._observations
        if seen.count < 2 or max(number, seen.count) < self._startup:
            return self.draw_untried(seen.rows, rng)
        rows = self._modelled()
        inputs, values = self._inputs([seen.configs[row] for row in rows]), seen.values(rows)
        process = self._fitted(inputs, values)
        running = [config for config, level in zip(seen.configs, seen.levels, strict=True) if not level]
        if running:
            more = self._inputs(running)
            inputs = np.concatenate([inputs, more])
            values = np.concatenate([values, process.predict(more)])
            process = self._fitted(inputs, values, process.kernel_)
        best = [seen.configs[row] for row in seen.order(rows)[:5]]
        return self._best_candidate(process, float(values.min()), best, rng)

    def _modelled(self) -> list[int]:
        """Return the rows of the trials that are modelled, in their order."""
        seen = self._observations
        rows = [row for row, level in enumerate(seen.levels) if level]
        if len(rows) > self._most:
            best = seen.order(rows)[: self._most // 2]
            rows = sorted({*best, *[row for row in rows if row not in best][len(best) - self._most :]})
        return rows

    def _best_candidate(
        self, process: Any, least: float, best: list[Config], rng: np.random.Generator
    ) -> Config:
        """Return the config with the largest expected improvement on `least`, by rounds of finer steps."""
        codes = rng.random((_RANDOM, self.space.width))
        centres = [self.space.encode(config) for config in best]
        candidates: dict[tuple[Any, ...], tuple[float, Config, np.ndarray]] = {}
        for step in _STEPS:
            near = np.repeat(np.array(centres), _NEAR // len(centres), axis=0)
            moved = rng.random(near.shape) < max(0.5, 1 / near.shape[1])
            codes = np.concatenate([codes, np.clip(near + step * moved * rng.normal(size=near.shape), 0, 1)])
            configs = {tuple(config.items()): config for config in map(self.space.decode, codes)}
            new = [key for key in configs if key not in self._observations.rows and key not in candidates]
            if new:
                gains = _improvement(process, self._inputs([configs[key] for key in new]), least)
                for key, gain in zip(new, gains.tolist(), strict=True):
                    candidates[key] = gain, configs[key], self.space.encode(configs[key])
            top = sorted(candidates.values(), key=lambda candidate: -candidate[0])[:5]
            centres = [code for _, _, code in top] or centres
            codes = np.empty((0, self.space.width))
        if not candidates:
            return self.draw_untried(self._observations.rows, rng)
        return max(candidates.values(), key=lambda candidate: candidate[0])[1]

    def _inputs(self, configs: Sequence[Config]) -> np.ndarray:
        """Return the inputs of the process: numbers as coded, and one input for each word."""
        columns = []
        for name, parameter in self.space.parameters.items():
            if isinstance(parameter, Categorical):
                words = np.zeros((len(configs), parameter.categories))
                for row, config in enumerate(configs):
                    if name in config:
                        words[row, parameter.index(config[name])] = 1.0
                columns.append(words)
            else:
                coded = [parameter.encode(config[name])[0] if name in config else 0.5 for config in configs]
                columns.append(np.array(coded)[:, None])
        return np.concatenate(columns, axis=1)

    def _fitted(self, inputs: np.ndarray, values: np.ndarray, kernel: Any = None) -> Any:
        """Return a process that is fitted to values; with a `kernel`, its settings are not learnt again."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        optimizer = None if kernel is not None else _minimise
        if kernel is None:
            scales = np.full(inputs.shape[1], 0.5)
            kernel = ConstantKernel(1.0, (0.05, 20.0)) * Matern(scales, (0.05, 10.0), nu=2.5)
            kernel = kernel + WhiteKernel(1e-3, (1e-6, 1.0))
        process = GaussianProcessRegressor(kernel, alpha=1e-8, optimizer=optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return process.fit(inputs, values)

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return self._observations.state_dict()

    def recall(self, remembered: Mapping[str, Any]) -> None:  # noqa: D102
        self._observations.load_state_dict(remembered)


def _minimise(objective: Any, start: np.ndarray, bounds: np.ndarray) -> tuple[np.ndarray, float]:
    """Minimise the negative likelihood of a kernel, as scikit-learn asks for it, with a prior.

    The logarithms of the scales are normal with standard deviation 1 around those of the start, and that of
    the noise with 2. Without a prior, a few trials fit a process in which a parameter has no effect.
    """
    from scipy.optimize import minimize

    precision = np.ones(len(start))
    precision[-1] = 0.25

    def penalised(theta: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradient = objective(theta)
        off = theta - start
        return loss + 0.5 * float(precision @ off**2), gradient + precision * off

    options = {"maxiter": _FIT_STEPS}
    minimum = minimize(penalised, start, method="L-BFGS-B", jac=True, bounds=bounds, options=options)
    return minimum.x, minimum.fun


def _improvement(process: Any, inputs: np.ndarray, least: float) -> np.ndarray:
    """Return the logarithm of the expected improvement on `least`: float64[n]."""
    from scipy.special import log_ndtr

    mean, deviation = process.predict(inputs, return_std=True)
    deviation = np.maximum(deviation, 1e-9)
    z = (least - mean) / deviation
    density = -0.5 * z * z - 0.5 * log(2 * np.pi)
    # log(phi(z) + z Phi(z)) - log phi(z); far below 0 it approaches -2 log(-z)
    ratio = np.exp(np.minimum(log_ndtr(z) - density, 700))
    near = np.log1p(np.maximum(z * ratio, -1 + 1e-12))
    inner = np.where(z > -20, near, -2 * np.log(np.maximum(-z, 1)))
    return np.asarray(density + inner + np.log(deviation))
