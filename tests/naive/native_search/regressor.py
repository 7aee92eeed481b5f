"""The regressor of a config: a table of weights, and gradient descent on it.

The update is the default one: adaptive (the rate of a weight falls with its squared gradients), normalized
(independent of the scale of a feature) and invariant (an example of weight 2 moves the prediction like two
examples of weight 1). Numbers are float32, in the order of the kernels.

Source: Ross, Mineiro, Langford, *Normalized Online Learning*, 2013; Karampatziakis, Langford, *Online
Importance Weight Aware Updates*, 2011.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tests.naive.losses import exp, make_loss

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Interaction
    from tests.naive.native_search.events import Event, Feature, Label
    from tests.naive.native_search.features import Examples
    from tests.naive.native_search.options import Options

F = np.float32
ZERO = F(0)
SMALL = F(1.084202e-19)


class Labels:
    """The loss, and the range of labels so far, to which predictions are clipped."""

    def __init__(self, options: Options) -> None:
        self.loss = make_loss(options.loss_function, F(-1), F(1))
        wide = F(50) if options.loss_function == "logistic" else F(0)
        self.low, self.high = -wide, wide
        self.logistic = options.link == "logistic"

    def see(self, label: np.float32) -> None:
        """Widen the range to include a label."""
        self.low, self.high = min(self.low, label), max(self.high, label)

    def clip(self, score: np.float32) -> np.float32:
        """Return the prediction of a score."""
        return min(max(score, self.low), self.high)

    def loss_of(self, score: np.float32, label: np.float32) -> np.float32:
        """Loss of a prediction."""
        return self.loss.value(self.clip(score), label, self.low, self.high)

    def residual(self, score: np.float32, label: np.float32) -> np.float32:
        """Return the residual of a prediction: with squared loss, the label minus the prediction."""
        return F(-0.5) * self.loss.slope(self.clip(score), label, self.low, self.high)

    def linked(self, prediction: np.float32) -> np.float32:
        """Return the prediction after the link function."""
        return F(1) / (F(1) + exp(-prediction)) if self.logistic else prediction


@dataclass(slots=True)
class Cell:
    """A weight, Σ squared gradients, the largest |x| of its feature, and its rate in the last update."""

    weight: np.float32 = ZERO
    squares: np.float32 = ZERO
    scale: np.float32 = ZERO
    rate: np.float32 = ZERO


class Regressor:
    """Predicts a cost, or a label, from features."""

    def __init__(self) -> None:
        self.table: dict[int, Cell] = {}
        self.total_norm = self.total_weight = 0.0
        self.n_actions = self.n_events = 0
        """Of events with several actions, how many there were of both; importance weights go by that."""

    def copy(self) -> Regressor:
        """One that has learnt the same."""
        return copy.deepcopy(self)

    def _add(self, total: np.float32, features: Sequence[Feature]) -> np.float32:
        for cell, x in features:
            if cell in self.table:
                total = total + self.table[cell].weight * x
        return total

    def part(self, features: Sequence[Feature]) -> np.float32:
        """Return the sum of weight times value over some features."""
        return self._add(F(0), features)

    def scores(
        self, event: Event, examples: Examples, interactions: Sequence[Interaction]
    ) -> list[np.float32]:
        """Score of every action."""
        context = self._add(event.initial, examples.of_context(interactions))
        return [
            self._add(context, examples.of_action(interactions, action))
            if examples.shares(action)
            else self._add(event.initial, examples.scored(interactions, action))
            for action in range(len(event.actions))
        ]

    def importance(self, label: Label, n_actions: int) -> np.float32:
        """Importance weight of a logged action: 1/p, divided by how many actions there are on average."""
        self.n_actions += n_actions
        self.n_events += 1
        return label.weight * (F(1) / label.probability * (F(self.n_events) / F(self.n_actions)))

    def learn(
        self,
        features: Sequence[Feature],
        score: np.float32,
        label: np.float32,
        weight: np.float32,
        learning_rate: np.float32,
        labels: Labels,
    ) -> None:
        """Move the score of some features towards a label."""
        prediction = labels.clip(score)
        if not (labels.loss_of(score, label) > 0 and weight > 0):
            return
        reach, norm = self._adapt(features, weight * labels.loss.slope_squared(prediction, label))
        self.total_norm += float(weight) * float(norm)
        self.total_weight += float(weight)
        factor = np.sqrt(F(self.total_weight) / F(self.total_norm))
        step = labels.loss.step(prediction, label, learning_rate * weight, reach * factor)
        for place, x in features:
            cell = self.table[place]
            cell.weight = cell.weight + step * factor * (x * cell.rate)

    def _adapt(self, features: Sequence[Feature], slope_squared: np.float32) -> tuple[np.float32, np.float32]:
        """Adapt the rates; return how far a step of 1 moves the score, and Σ (x / scale)²."""
        reach, norm = F(0), F(0)
        for place, x in features:
            cell = self.table.setdefault(place, Cell())
            if x == 0:  # of a vector
                continue
            size, square = max(abs(x), SMALL), max(x * x, SMALL * SMALL)
            if size > cell.scale:
                if cell.scale > 0:
                    cell.weight = cell.weight * (cell.scale / size)
                cell.scale = size
            cell.squares = cell.squares + slope_squared * square
            with np.errstate(over="ignore"):  # the rate of a feature that was always 0
                rate = F(1) / np.sqrt(cell.squares) * (F(1) / cell.scale)
            cell.rate = rate if np.isfinite(rate) else F(0)
            norm = norm + square / (cell.scale * cell.scale)
            reach = reach + square * cell.rate
        return reach, norm
