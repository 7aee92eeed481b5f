"""The ensemble of classes the slow, obvious way: NumPy in float64, one event at a time, dense vectors.

An event is a list of features: key (hash + 1), value, and whether it may be crossed. Two regressions learn
the truth values "the event is of this class" by least squares, like those of costs. Two multinomial logistic
regressions learn by AdaGrad. The combiner, a multinomial logistic regression on the scores of all, learns by
Newton's method.
"""

from __future__ import annotations

import copy
import math
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.members import ALONE, EACH, FREQUENCY, MOST_NUMBERS, OFTEN, PHASE, WAITING, WAVES, Squares
from tests.naive.trees import BoostedTrees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Event = Sequence[tuple[int, float, bool]]
    Rows = list[tuple[int, float]]

MOST_INPUTS, MOST_CROSSED = 300, 64
FAR = 4.0
VARIANCE, VARIANCE_OF_WAVES, ROUND = 1 / 3, 10.0, 64
RATE, TINY = 0.3, 1e-3
LEAST = 0.01
KEEPS, PRIOR = 0.9998, 5.0
BIAS_PRIOR, NEW = 9.0, 4.0
SEARCH = 8
MIX, WHOLE = 0x9E3779B97F4A7C15, 2**64


def softmax(scores: Vector) -> Vector:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())


class LeastSquares:
    """Regressions with the same inputs, one for each class. All of them have the same covariance."""

    def __init__(self, variance: float, n: int) -> None:
        self.classes: list[Squares] = []
        self.empty = Squares(variance, n, narrow=True, keeps=1.0)

    def add_class(self) -> None:
        """Add a class: no earlier event was of this one."""
        new = copy.deepcopy(self.empty)
        self.classes.append(new)

    def predict(self, inputs: Vector) -> Vector:
        for each in self.classes:
            each.grow(len(inputs))
        return np.array([each.weights @ inputs for each in self.classes])

    def learn(self, inputs: Vector, code: int, weight: float, n_seen: int) -> None:
        """Learn event number `n_seen`; later the covariance takes one event in four for four."""
        chosen = n_seen * MIX % WHOLE < WHOLE // 4
        times, together = 1 if n_seen <= OFTEN else EACH * chosen, WAITING if n_seen > ALONE else 1
        for index, each in enumerate([*self.classes, self.empty]):
            each.learn_later(inputs, float(index == code), 1 / weight, times, together)
            if n_seen % ROUND == 0:
                each.cut_off()


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


class Combiner:
    """A logistic regression on scores, with the same weights for all classes, and their levels."""

    def __init__(self) -> None:
        self.weights = np.array([0, 0, 0, 0, 0, 0.5, 0.5, 0, 0])
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
        self.bins: set[int] = set()
        """Features that may not be crossed, which are bins of numbers."""
        self.numbers: list[int] = []
        self.linear, self.waves = LeastSquares(VARIANCE, 1), LeastSquares(VARIANCE_OF_WAVES, WAVES)
        self.table = np.zeros((2, self.n_rows, 0))
        self.combiner = Combiner()
        self.shares = np.zeros(0)
        self.trees = BoostedTrees()
        self.events = 0
        if searched:
            self.combiner.weights = np.eye(9)[SEARCH]

    def end_search(self) -> None:
        self.combiner.weights += np.array([0, 0, 0, 0, 0, 0.5, 0.5, 0, -1]) * self.combiner.weights[SEARCH]

    def add_class(self) -> None:
        """Add a class, which is about as likely as one event among all so far."""
        self.table = np.pad(self.table, ((0, 0), (0, 0), (0, 1)))
        self.table[0, 0, -1] = -math.log(1 + self.events)
        self.shares = np.append(self.shares, 0.0)
        combiner = self.combiner
        combiner.levels = np.append(combiner.levels, 0.0)
        combiner.level_information = np.append(combiner.level_information, 0.0)
        self.linear.add_class()
        self.waves.add_class()

    def _row(self, key: int, kind: int) -> int:
        mixed = (key + kind) * MIX % WHOLE
        return ((mixed ^ mixed >> 31) * MIX % WHOLE >> 33) % self.n_rows

    def _note(self, event: Event) -> None:
        """Note new features while there is room, and which of them are numbers: values other than 1."""
        for key, value, crossed in event:
            if key not in self.inputs and len(self.inputs) + 1 < MOST_INPUTS:
                self.inputs[key] = len(self.inputs) + 1
                if not crossed:
                    self.bins.add(key)
            number = key in self.inputs and key not in self.bins and value != 1 and math.isfinite(value)
            if number and key not in self.numbers and len(self.numbers) < MOST_NUMBERS:
                self.numbers.append(key)

    def _values(self, event: Event) -> list[float]:
        """Return the values of the features, none of them far from 0."""
        return [min(max(value if math.isfinite(value) else 0.0, -FAR), FAR) for _, value, _ in event]

    def run(self, event: Event, code: int, weight: float, search: Vector) -> Vector:
        """Return the probabilities of the classes, by the search too, and learn the class if there is one."""
        learns = code >= 0 and weight > 0
        if learns:
            self._note(event)
        values, keys = self._values(event), [key for key, _, _ in event]
        inputs, raw = np.zeros(len(self.inputs) + 1), dict.fromkeys(self.numbers, math.nan)
        inputs[0] = 1
        for (key, value, _), near in zip(event, values, strict=True):
            if key in self.inputs:
                inputs[self.inputs[key]] += near
            if key in self.numbers:
                raw[key] = value if math.isfinite(value) else 0.0
        away = [inputs[self.inputs[key]] for key in self.numbers] + [0.0] * (MOST_NUMBERS - len(self.numbers))
        scale = math.sqrt(2 / max(len(self.numbers), 1))
        angles = scale * np.array(away) @ FREQUENCY.reshape(MOST_NUMBERS, WAVES) + PHASE
        waves = math.sqrt(2 / WAVES) * np.cos(angles)
        waves[0] = 1
        waves *= len(self.numbers) > 0
        words = [key for key, value, crossed in event if key not in self.numbers and value == 1 and crossed]
        pairs = [(word * MIX + words[j]) % WHOLE for i, word in enumerate(words) for j in range(i)]
        single = [(0, 1.0)] + [(self._row(key, 1), value) for key, value in zip(keys, values, strict=True)]
        crossed = [(self._row(key, 2), value) for key, value in zip(keys, values, strict=True)]
        if len(words) <= MOST_CROSSED:
            crossed += [(self._row(pair, 3), 1.0) for pair in pairs]

        logistic = Logistic(*self.table)
        of_inputs, of_waves = self.linear.predict(inputs), self.waves.predict(waves)
        of_single, of_crossed = logistic.score(single), logistic.score(crossed)
        shares = (self.shares + 0.5) / (self.shares + 0.5).sum()
        logs = [np.log(np.clip(each, LEAST, 1)) for each in (of_inputs, of_waves)]
        row = [(self.inputs[key], raw[key]) for key in self.numbers]
        row += [
            (at, float(inputs[at]))
            for key, at in self.inputs.items()
            if inputs[at] != 0 and key not in self.numbers and key not in self.bins
        ]
        of_trees = self.trees.score(row, len(self.shares))
        scores = np.array(
            [
                *(of_inputs, logs[0], of_waves, logs[1], of_trees, of_single, of_crossed),
                *(np.log(shares), np.log(search)),
            ]
        )
        chances = self.combiner.chances(scores)
        if not learns:
            return chances

        truth = np.eye(len(chances))[code]
        self.events += 1
        self.linear.learn(inputs, code, weight, self.events)
        if self.numbers:
            self.waves.learn(waves, code, weight, self.events)
        logistic.learn(single, truth, softmax(of_single), weight)
        logistic.learn(crossed, truth, softmax(of_crossed), weight)
        # The first events of a class surprise every member, so the combiner learns little from them.
        self.combiner.learn(scores, truth, weight * self.shares[code] / (self.shares[code] + NEW))
        model = self.trees.model
        self.trees.learn(row, code, weight, len(self.shares))
        if self.trees.model is not model:  # what is known of the weights was learnt with other trees
            self.combiner.information = 0.5 * self.combiner.information + 0.5 * PRIOR * np.eye(9)
        self.shares[code] += weight
        return chances
