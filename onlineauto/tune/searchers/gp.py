"""``GpSearcher``: proposes the config with the largest expected improvement under a Gaussian process."""

from __future__ import annotations

from functools import lru_cache
from math import erfc, log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from onlineauto.errors import OptionError
from onlineauto.tune.searchers.observations import Observations
from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.spaces import Int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.tune.spaces import Config, Parameter, Space

_RANDOM = 1000
_NEAR = 200
_STEPS = (0.1, 0.05, 0.02, 0.008, 0.003)
"""Standard deviations of the steps around the best candidates so far, one round each."""
_FIT_STEPS = 30
_LEARNT_AGAIN = 1.08
"""The hyperparameters are learnt again when the number of trials has grown by this factor."""
_MOST_VALUES = 1000
"""Maximum number of values of a parameter whose candidates are rounded before they are compared."""
_STARTS = {"signal": 0.0, "scale": log(0.5), "noise": log(1e-3)}
_BOUNDS = {"signal": (0.05, 20.0), "scale": (0.05, 10.0), "noise": (1e-6, 1.0)}
_JITTER = 1e-8


class GpSearcher(Searcher):
    """Proposes configs by a Gaussian process, for budgets of up to a few hundred trials.

    The process has a Matérn kernel of smoothness 5/2, one length scale for each parameter, and learnt noise.
    Each word is one input. A running trial counts as if it had the mean that the process predicts for it. The
    cost of a proposal grows with the cube of the number of trials.

    Source: Rasmussen and Williams: Gaussian processes for machine learning, 2006, sections 4.2 and 5.4.
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
        seen = self._observations
        if seen.count < 2 or max(number, seen.count) < self._startup:
            return self.draw_untried(seen.rows, rng)
        with threadpool_limits(1):  # matrices are small
            return self._propose(rng)

    def _propose(self, rng: np.random.Generator) -> Config:
        seen = self._observations
        rows = self._modelled(len(seen.configs))
        inputs, values = self._inputs(rows), seen.values(rows)
        kernel = Kernel.of(self._hyperparameters())
        process = Process(kernel, inputs, values)
        means = process.predict(inputs)[0]
        running = [row for row, level in enumerate(seen.levels) if not level]
        if running:
            more = self._inputs(running)
            process = Process(
                kernel, np.vstack([inputs, more]), np.concatenate([values, process.predict(more)[0]])
            )
        best = inputs[np.argsort(means, kind="stable")[:5]]
        return self._best_candidate(process, float(means.min()), best, rng)

    def _hyperparameters(self) -> np.ndarray:
        """Return the logarithms of the hyperparameters, learnt from the first trials: nearly all of them."""
        seen, n_trials = self._observations, self._startup
        while int(n_trials * _LEARNT_AGAIN) + 1 <= len(seen.configs):
            n_trials = int(n_trials * _LEARNT_AGAIN) + 1
        rows = self._modelled(n_trials)
        if len(rows) < 2:
            rows = self._modelled(len(seen.configs))
        inputs = self._inputs(rows)
        return np.array(_learnt(inputs.tobytes(), seen.values(rows).tobytes(), inputs.shape[1]))

    def _modelled(self, n_trials: int) -> list[int]:
        """Return the rows of the first trials that are modelled, in their order."""
        seen = self._observations
        rows = [row for row, level in enumerate(seen.levels[:n_trials]) if level]
        if len(rows) > self._most:
            best = seen.order(rows)[: self._most // 2]
            rows = sorted({*best, *[row for row in rows if row not in best][len(best) - self._most :]})
        return rows

    def _inputs(self, rows: list[int]) -> np.ndarray:
        return np.array([self.space.encode(self._observations.configs[row]) for row in rows])

    def _best_candidate(
        self, process: Process, least: float, centres: np.ndarray, rng: np.random.Generator
    ) -> Config:
        """Return the config with the largest expected improvement on `least`, by rounds of finer steps."""
        codes = self._rounded(rng.random((_RANDOM, self.space.width)))
        gains = improvement(*process.predict(codes), least)
        for step in _STEPS:
            near = np.repeat(centres, _NEAR // len(centres), axis=0)
            moved = rng.random(near.shape) < max(0.5, 1 / near.shape[1])
            near = self._rounded(np.clip(near + step * moved * rng.normal(size=near.shape), 0, 1))
            codes = np.concatenate([codes, near])
            gains = np.concatenate([gains, improvement(*process.predict(near), least)])
            centres = codes[np.argsort(-gains, kind="stable")[:5]]
        for row in np.argsort(-gains, kind="stable").tolist():
            config = self.space.decode(codes[row])
            if tuple(config.items()) not in self._observations.rows:
                return config
        return self.draw_untried(self._observations.rows, rng)

    def _rounded(self, codes: np.ndarray) -> np.ndarray:
        """Return the codes of the configs that codes represent: float64[n, width]."""
        space = self.space
        if any(parameter.when for parameter in space.parameters.values()):
            return np.array([space.encode(space.decode(code)) for code in codes])
        codes = codes.copy()
        for name, parameter in space.parameters.items():
            block = space.blocks[name]
            if parameter.categories:
                words = [parameter.decode(code) for code in codes[:, block].tolist()]
                codes[:, block] = np.array([parameter.encode(word) for word in words]).reshape(len(codes), -1)
            elif parameter.size <= _MOST_VALUES:
                values = _values(parameter)
                centres = np.array([parameter.encode(value)[0] for value in values])
                cells = np.searchsorted((centres[1:] + centres[:-1]) / 2, codes[:, block.start])
                codes[:, block.start] = centres[cells]
        return codes

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return self._observations.state_dict()

    def recall(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._observations.load_state_dict(state)


def _values(parameter: Parameter) -> Sequence[Any]:
    """Return all values of a parameter of numbers that has a finite number of them."""
    if isinstance(parameter, Int):  # the grid of a logarithmic one leaves out values
        return range(parameter.low, parameter.high + 1, parameter.step)
    return parameter.grid(int(parameter.size))


class Kernel(NamedTuple):
    """A Matérn kernel of smoothness 5/2 with independent noise."""

    signal: float
    scales: np.ndarray
    noise: float

    @classmethod
    def of(cls, logs: np.ndarray) -> Kernel:
        """Return the kernel of the logarithms of the signal, the scales and the noise."""
        numbers = np.exp(logs)
        return cls(float(numbers[0]), numbers[1:-1], float(numbers[-1]))

    def between(self, inputs: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the covariances without noise: float64[n, m]."""
        one, other = inputs / self.scales, others / self.scales
        squares = (one**2).sum(1)[:, None] + (other**2).sum(1) - 2 * one @ other.T
        return self.matern(np.sqrt(5 * np.maximum(squares, 0)))

    def matern(self, distances: np.ndarray) -> np.ndarray:
        """Return the covariances at distances that are multiplied by the square root of 5."""
        return np.asarray(self.signal * (1 + distances + distances**2 / 3) * np.exp(-distances))


class Process:
    """A Gaussian process with mean 0 that has learnt values at inputs."""

    def __init__(self, kernel: Kernel, inputs: np.ndarray, values: np.ndarray) -> None:
        self._kernel, self._inputs = kernel, inputs
        covariance = kernel.between(inputs, inputs)
        covariance[np.diag_indices_from(covariance)] += kernel.noise + _JITTER
        self._factor = np.linalg.inv(np.linalg.cholesky(covariance))
        self._weights = self._factor.T @ (self._factor @ values)

    def predict(self, inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean and the standard deviation of the function without noise: two float64[n]."""
        covariances = self._kernel.between(inputs, self._inputs)
        explained = ((covariances @ self._factor.T) ** 2).sum(1)
        deviation = np.sqrt(np.maximum(self._kernel.signal - explained, 1e-18))
        return covariances @ self._weights, deviation


@lru_cache(maxsize=8)
def _learnt(inputs: bytes, values: bytes, width: int) -> list[float]:
    """Return the same as `learn`, for the arrays in these bytes."""
    logs = learn(np.frombuffer(inputs).reshape(-1, width), np.frombuffer(values))
    return [float(number) for number in logs]


def learn(inputs: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return the logarithms of the signal, the scales and the noise of the most probable kernel."""
    low, high = np.log([_BOUNDS[kind] for kind in _kinds(inputs.shape[1])]).T
    return minimised(posterior(inputs, values), _start(inputs.shape[1]), low, high)


def _kinds(width: int) -> list[str]:
    return ["signal", *["scale"] * width, "noise"]


def _start(width: int) -> np.ndarray:
    return np.array([_STARTS[kind] for kind in _kinds(width)])


def posterior(inputs: np.ndarray, values: np.ndarray) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
    """Return a function of hyperparameters: the negative logarithm of their probability, and its gradient.

    The logarithms of signal and scales are normal with standard deviation 1 around those of the start, and
    that of the noise with 2. Without a prior, a few trials fit a process in which a parameter has no effect.
    """
    n, width = inputs.shape
    start = _start(width)
    precision = np.array([0.25 if kind == "noise" else 1.0 for kind in _kinds(width)])
    squares = ((inputs.T[:, :, None] - inputs.T[:, None, :]) ** 2).reshape(width, n * n)

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        kernel = Kernel.of(logs)
        distances = np.sqrt(5 * (kernel.scales**-2 @ squares)).reshape(n, n)
        signal = kernel.matern(distances)
        covariance = signal + (kernel.noise + _JITTER) * np.eye(n)
        try:
            factor = np.linalg.inv(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            return np.inf, np.zeros(len(logs))
        weights = factor.T @ (factor @ values)
        slope = factor.T @ factor - np.outer(weights, weights)
        along = slope * (5 / 3 * kernel.signal * (1 + distances) * np.exp(-distances))
        gradient = [
            (slope * signal).sum(),
            *(squares @ along.ravel() / kernel.scales**2),
            kernel.noise * np.trace(slope),
        ]
        off = logs - start
        likelihood = 0.5 * float(values @ weights) - float(np.log(np.diag(factor)).sum())
        return likelihood + 0.5 * float(precision @ off**2), 0.5 * np.array(gradient) + precision * off

    return loss


def minimised(
    loss: Callable[[np.ndarray], tuple[float, np.ndarray]],
    point: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> np.ndarray:
    """Return a point within bounds where a loss is near a minimum, by up to 30 steps of BFGS."""
    value, gradient = loss(point)
    inverse = np.eye(len(point))
    for _ in range(_FIT_STEPS):
        free = ~(((point <= low) & (gradient > 0)) | ((point >= high) & (gradient < 0)))
        direction = -(inverse @ (gradient * free)) * free
        if direction @ gradient >= 0:
            inverse, direction = np.eye(len(point)), -gradient * free
        size = min(1.0, 1.0 / max(float(np.abs(direction).max()), 1e-9))
        for _ in range(6):
            after = np.clip(point + size * direction, low, high)
            new_value, new_gradient = loss(after)
            if new_value <= value + 1e-4 * float(gradient @ (after - point)):
                break
            size /= 4
        else:
            return point
        moved, turned = after - point, new_gradient - gradient
        gain, point, value, gradient = value - new_value, after, new_value, new_gradient
        if gain < 1e-3:
            break
        if (curvature := float(moved @ turned)) > 1e-10:
            change = np.eye(len(point)) - np.outer(moved, turned) / curvature
            inverse = change @ inverse @ change.T + np.outer(moved, moved) / curvature
    return point


def improvement(mean: np.ndarray, deviation: np.ndarray, least: float) -> np.ndarray:
    """Return the logarithm of the expected improvement on `least`: float64[n].

    Source: Ament and others: Unexpected improvements to expected improvement, 2023.
    """
    z = (least - mean) / deviation
    density = -0.5 * z * z - 0.5 * log(2 * np.pi)
    near = np.clip(z, -20.0, 30.0)
    tails = np.array([0.5 * erfc(-score / sqrt(2)) for score in near.tolist()])
    ratio = near * tails * np.exp(0.5 * near * near + 0.5 * log(2 * np.pi))
    logs = np.where(z > -20, np.log1p(np.maximum(ratio, -1 + 1e-12)), -2 * np.log(np.maximum(-z, 1.0)))
    logs = np.where(z > 30, np.log(np.maximum(z, 1.0)) - density, logs)
    return np.asarray(density + logs + np.log(deviation))
