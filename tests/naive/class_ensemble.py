"""The ensemble of classes the slow, obvious way: NumPy in float64, one event at a time, dense vectors.

An event is a list of features: key (hash + 1), value, and whether it may be crossed. Two regressions learn
the truth values "the event is of this class" by recursive least squares. Two multinomial logistic regressions
learn by AdaGrad. The combiner, a multinomial logistic regression on the scores of all, learns by Newton's
method.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Event = Sequence[tuple[int, float, bool]]
    Rows = list[tuple[int, float]]

MOST_INPUTS, MOST_NUMBERS, MOST_CROSSED, WAVES = 384, 64, 64, 128
FAR = 4.0
VARIANCE, RISE, ROUND = 0.1, 1e-5, 64
OFTEN, EACH = 512, 4
RATE, TINY = 0.3, 1e-3
LEAST = 0.01
KEEPS, PRIOR = 0.9998, 5.0
BIAS_PRIOR, NEW = 9.0, 4.0
SEARCH = 7
MIX, WHOLE = 0x9E3779B97F4A7C15, 2**64

_DRAW = np.random.Generator(np.random.PCG64(20_261_126))
FREQUENCY = _DRAW.standard_normal((MOST_NUMBERS, WAVES))
PHASE = _DRAW.uniform(0, 2 * np.pi, WAVES)


def softmax(scores: Vector) -> Vector:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


class LeastSquares:
    """Regressions with the same inputs, one for each class, that share the covariance of their weights."""

    def __init__(self) -> None:
        self.weights = np.zeros((0, 0))
        self.covariance = np.zeros((0, 0))

    def grow(self, n: int, n_classes: int) -> None:
        """Let there be `n` inputs; the weights of a new one are 0, and have the first variance."""
        before, k = self.weights.shape
        self.weights = np.pad(self.weights, ((0, n - before), (0, n_classes - k)))
        self.covariance = np.pad(self.covariance, (0, n - before))
        for at in range(before, n):
            self.covariance[at, at] = VARIANCE

    def learn(self, inputs: Vector, errors: Vector, weight: float, times: int) -> None:
        """Learn what the predictions of an event lack; the covariance takes the event for so many."""
        gains = (self.covariance * inputs).sum(axis=1)
        known = float(gains @ inputs)
        self.weights += np.outer(gains / (1 / weight + known), errors)
        if times > 0:
            self.covariance -= np.outer(gains, gains) / (1 / (times * weight) + known)

    def raise_variances(self) -> None:
        for at in range(len(self.covariance)):
            self.covariance[at, at] += RISE * max(VARIANCE - self.covariance[at, at], 0)


class Logistic:
    """A multinomial logistic regression over a table of hashed features, which learns by AdaGrad."""

    def __init__(self, weights: Vector, squares: Vector) -> None:
        self.weights, self.squares = weights, squares

    def score(self, rows: Rows) -> Vector:
        return sum((self.weights[row] * value for row, value in rows), np.zeros(self.weights.shape[1]))

    def learn(self, rows: Rows, truth: Vector, chances: Vector, weight: float) -> None:
        for row, value in rows:
            gradient = weight * (truth - chances) * value
            self.squares[row] += gradient**2
            rate = RATE / math.sqrt(len(rows))
            self.weights[row] += rate * gradient / (TINY + np.sqrt(self.squares[row]))


class Number:
    """Mean and variance of the values of a number so far."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def away(self, value: float) -> float:
        """How many standard deviations a value is away from the mean; 0 while there is no deviation."""
        deviation = float(np.std(self.values)) if len(set(self.values)) > 1 else 0.0
        return (value - float(np.mean(self.values))) / deviation if deviation > 0 else 0.0


class Combiner:
    """A logistic regression on scores, with the same weights for all classes, and their levels."""

    def __init__(self) -> None:
        self.weights = np.array([0, 0, 0.5, 0.5, 0, 0, 0, 0, 0])
        self.information = np.eye(9) * PRIOR
        self.levels = np.zeros(0)
        self.level_information = np.zeros(0)

    def chances(self, scores: Vector) -> Vector:
        return softmax(self.levels + self.weights @ scores)

    def learn(self, scores: Vector, truth: Vector, weight: float) -> None:
        """Take a step of Newton's method on the log loss, whose Hessian is the covariance of the scores."""
        chances = self.chances(scores)
        mean = scores @ chances
        hessian = (scores * chances) @ scores.T - np.outer(mean, mean)
        self.information = KEEPS * self.information + weight * hessian
        self.weights += np.linalg.solve(self.information, weight * (scores @ truth - mean))
        self.information += (1 - KEEPS) * PRIOR * np.eye(9)
        self.level_information = KEEPS * self.level_information + weight * chances * (1 - chances)
        self.levels += weight * (truth - chances) / (self.level_information + weight + BIAS_PRIOR)


class ClassEnsemble:
    """The members and their combiner; a search of classes is one of the scores if `searched`."""

    def __init__(self, *, hash_bits: int, searched: bool) -> None:
        self.n_rows = 1 << hash_bits
        self.inputs: dict[int, int] = {}
        self.numbers: dict[int, Number] = {}
        self.linear, self.waves = LeastSquares(), LeastSquares()
        self.linear.grow(1, 0)
        self.table = np.zeros((2, self.n_rows, 0))
        self.combiner = Combiner()
        self.shares = np.zeros(0)
        self.trees = BoostedTrees()
        self.events = 0
        if searched:
            self.combiner.weights = np.array([0, 0, 0, 0, 0, 0, 0, 1.0, 0])

    def end_search(self) -> None:
        self.combiner.weights += np.array([0, 0, 0.5, 0.5, 0, 0, 0, -1, 0]) * self.combiner.weights[SEARCH]

    def add_class(self) -> None:
        """Add a class, which is about as likely as one event among all so far."""
        self.table = np.pad(self.table, ((0, 0), (0, 0), (0, 1)))
        self.table[0, 0, -1] = -math.log(1 + self.events)
        self.shares = np.append(self.shares, 0.0)
        combiner = self.combiner
        combiner.levels = np.append(combiner.levels, 0.0)
        combiner.level_information = np.append(combiner.level_information, 0.0)
        self._grow()

    def _grow(self) -> None:
        self.linear.grow(len(self.inputs) + 1, len(self.shares))
        self.waves.grow(WAVES, len(self.shares))

    def _row(self, key: int, kind: int) -> int:
        mixed = (key + kind) * MIX % WHOLE
        return ((mixed ^ mixed >> 31) * MIX % WHOLE >> 33) % self.n_rows

    def _note(self, event: Event) -> None:
        """Note new features while there is room, and which of them are numbers: values other than 1."""
        for key, value, _ in event:
            if key not in self.inputs and len(self.inputs) + 1 < MOST_INPUTS:
                self.inputs[key] = len(self.inputs) + 1
            number = key in self.inputs and value != 1 and math.isfinite(value)
            if number and key not in self.numbers and len(self.numbers) < MOST_NUMBERS:
                self.numbers[key] = Number()
        self._grow()

    def _values(self, event: Event) -> list[float]:
        """The values of the features: numbers are standardised, and none is far from 0."""
        values = []
        for key, value, _ in event:
            finite = value if math.isfinite(value) else 0.0
            away = self.numbers[key].away(finite) if key in self.numbers else finite
            values.append(min(max(away, -FAR), FAR))
        return values

    def run(self, event: Event, code: int, weight: float, search: Vector) -> Vector:
        """Return the probabilities of the classes, by the search too, and learn the class if there is one."""
        learns = code >= 0 and weight > 0
        if learns:
            self._note(event)
        values, keys = self._values(event), [key for key, _, _ in event]
        inputs, away = np.zeros(len(self.inputs) + 1), np.zeros(MOST_NUMBERS)
        inputs[0] = 1
        for key, value in zip(keys, values, strict=True):
            if key in self.inputs:
                inputs[self.inputs[key]] += value
            if key in self.numbers:
                away[list(self.numbers).index(key)] = value
        waves = np.cos(away @ FREQUENCY / math.sqrt(max(len(self.numbers), 1)) + PHASE)
        waves *= len(self.numbers) > 0
        words = [key for key, value, crossed in event if key not in self.numbers and value == 1 and crossed]
        pairs = [(word * MIX + words[j]) % WHOLE for i, word in enumerate(words) for j in range(i)]
        single = [(0, 1.0)] + [(self._row(key, 1), value) for key, value in zip(keys, values, strict=True)]
        crossed = [(self._row(key, 2), value) for key, value in zip(keys, values, strict=True)]
        if len(words) <= MOST_CROSSED:
            crossed += [(self._row(pair, 3), 1.0) for pair in pairs]

        logistic = Logistic(*self.table)
        of_inputs, of_waves = inputs @ self.linear.weights, waves @ self.waves.weights
        of_single, of_crossed = logistic.score(single), logistic.score(crossed)
        shares = (self.shares + 0.5) / (self.shares + 0.5).sum()
        logs = [np.log(np.clip(each, LEAST, 1)) for each in (of_inputs, of_waves)]
        numbers = [(self.inputs[key], value) for key, value, _ in event if key in self.numbers]
        known = [
            (self.inputs[key], 1.0)
            for key, _, crossed in event
            if crossed and key in self.inputs and key not in self.numbers
        ]
        of_trees = self.trees.score(numbers + known, len(self.shares))
        scores = np.array(
            [of_inputs, of_waves, of_single, of_crossed, *logs, np.log(shares), np.log(search), of_trees]
        )
        chances = self.combiner.chances(scores)
        if not learns:
            return chances

        truth = np.eye(len(chances))[code]
        # Later the covariances learn one event in four, chosen by its number, and take it for four.
        chosen = self.events * MIX % WHOLE < WHOLE // 4
        times = 1 if self.events < OFTEN else EACH if chosen else 0
        self.linear.learn(inputs, truth - of_inputs, weight, times)
        if self.numbers:
            self.waves.learn(waves, truth - of_waves, weight, times)
        logistic.learn(single, truth, softmax(of_single), weight)
        logistic.learn(crossed, truth, softmax(of_crossed), weight)
        # The first events of a class surprise every member, so the combiner learns little from them.
        self.combiner.learn(scores, truth, weight * self.shares[code] / (self.shares[code] + NEW))
        model = self.trees.model
        self.trees.learn(numbers + known, code, weight, len(self.shares))
        if self.trees.model is not model:  # what is known of the weights was learnt with other trees
            self.combiner.information = 0.5 * self.combiner.information + 0.5 * PRIOR * np.eye(9)
        self.shares[code] += weight
        self.events += 1
        if self.events % ROUND == 0:
            self.linear.raise_variances()
            self.waves.raise_variances()
        for key, value, _ in event:
            if key in self.numbers and math.isfinite(value):
                self.numbers[key].values.append(value)
        return chances
