"""Gradient descent on a dictionary of cells, one feature after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from onlineauto.features.block import UNLABELLED
from tests.naive.blocks import Event
from tests.naive.features import Featurizer
from tests.naive.interactions import Feature
from tests.naive.losses import Loss, exp, power

F = np.float32
ZERO, HALF = F(0), F(0.5)
HUGE = F(np.finfo(np.float32).max)
SMALL = F(1.084202e-19)


def apply_link(link: str, raw: np.float32) -> np.float32:
    if link == "logistic":
        return F(1) / (F(1) + exp(-raw))
    if link == "glf1":
        return F(2) / (F(1) + exp(-raw)) - F(1)
    return exp(raw) if link == "poisson" else raw


@dataclass
class Cell:
    """Weight, Σ gradient², largest |x| and last rate."""

    w: np.float32
    a: np.float32
    n: np.float32 = ZERO
    rate: np.float32 = ZERO


@dataclass(kw_only=True)
class Learner:
    """A table of weights, with the state that all lanes share and the state of each lane."""

    loss: Loss
    learning_rate: np.float32 = HALF
    power_t: np.float32 = HALF
    adaptive: bool = True
    normalized: bool = True
    invariant: bool = True
    l1: float = 0.0
    l2: float = 0.0
    initial_t: float = 0.0
    supplied_t: float = 0.0
    """`initial_t` if it was supplied, else 0: the first value of the sums of a lane."""
    initial_weight: float = 0.0
    low: np.float32 = ZERO
    high: np.float32 = ZERO
    track: bool = True
    lanes: int = 1
    t: float = field(init=False)
    set_aside: list[float] = field(init=False)
    gravity: float = field(init=False, default=0.0)
    contraction: float = field(init=False, default=1.0)
    factor: np.float32 = field(init=False, default=ZERO)
    norm: list[float] = field(init=False)
    weight: list[float] = field(init=False)
    table: dict[tuple[int, int], Cell] = field(init=False, default_factory=dict)
    untouched: np.float32 = field(init=False)

    def __post_init__(self) -> None:
        self.t = self.initial_t
        self.untouched = F(self.initial_weight)
        self.set_aside = [0.0, 0.0]  # weights of held-out and of unlabelled events
        self.norm = [self.supplied_t] + [0.0] * (self.lanes - 1)
        self.weight = [self.supplied_t] + [0.0] * (self.lanes - 1)

    def cell(self, place: int, lane: int) -> Cell:
        fresh = Cell(self.untouched, F(self.initial_t if self.adaptive else 0))
        return self.table.setdefault((place, lane), fresh)

    # -- predicting --------------------------------------------------------------------------------

    def shrunk(self, w: np.float32) -> np.float32:
        gravity = F(self.gravity)
        return w - np.sign(w) * gravity if abs(w) > gravity else F(0)

    def raw(self, features: Sequence[Feature], *, lane: int = 0, initial: np.float32 = ZERO) -> np.float32:
        total = initial
        for place, x in features:
            w = self.cell(place, lane).w
            total = total + (self.shrunk(w) if self.l1 > 0 else w) * x
        return total * F(self.contraction)

    def clip(self, raw: np.float32) -> np.float32:
        return F(0) if np.isnan(raw) else min(max(raw, self.low), self.high)

    # -- learning ----------------------------------------------------------------------------------

    def learn(
        self,
        features: Sequence[Feature],
        label: np.float32,
        weight: np.float32,
        *,
        lane: int = 0,
        initial: np.float32 = ZERO,
        squares: np.float32 = ZERO,
    ) -> tuple[np.float32, np.float32]:
        """Widen the range of labels, predict and update; return the raw and the clipped prediction."""
        if self.track:
            self.low = min(self.low, label)
            self.high = max(self.high, label) if label != UNLABELLED else self.high
        raw = self.raw(features, lane=lane, initial=initial)
        p = self.clip(raw)
        if label != UNLABELLED and weight > 0 and self.loss.value(p, label, self.low, self.high) > 0:
            self.update(features, p, label, weight, lane, squares)
        return raw, p

    def update(
        self,
        features: Sequence[Feature],
        p: np.float32,
        y: np.float32,
        weight: np.float32,
        lane: int,
        squares: np.float32,
    ) -> None:
        rated = self.adaptive or self.normalized
        reach = (
            self.sensitivity(features, weight * self.loss.slope_squared(p, y), weight, lane)
            if rated
            else squares
        )
        scale = self.learning_rate * weight
        if not self.adaptive:
            scale = scale * power(
                F(self.t + float(weight) - self.set_aside[0] - self.set_aside[1]), -self.power_t
            )
        if self.invariant:
            step = self.loss.step(p, y, scale, reach)
        else:
            step = self.loss.plain_step(p, y, scale)
        if (self.l1 or self.l2) and abs(float(step)) > 1e-8:
            step = self.penalize(p, y, step)
        if np.isnan(step) or step == 0:
            return
        if self.normalized:
            step = step * self.factor
        for place, x in features:
            if abs(x) < HUGE:
                cell = self.cell(place, lane)
                cell.w = cell.w + step * (x * cell.rate if rated else x)
        if self.contraction < 1e-9 or self.gravity > 1e3:
            self.materialize()

    def sensitivity(
        self, features: Sequence[Feature], slope_squared: np.float32, weight: np.float32, lane: int
    ) -> np.float32:
        """Return how far a step of 1 moves the prediction."""
        if slope_squared == 0:
            return F(1)
        reach, norm = F(0), F(0)
        for place, value in features:
            cell = self.cell(place, lane)
            x, square = value, value * value
            if square < SMALL * SMALL:
                x, square = (SMALL if x > 0 else -SMALL), SMALL * SMALL
            if self.adaptive:
                cell.a = cell.a + slope_squared * square
            if self.normalized:
                self.rescale(cell, abs(x))
                norm = norm + (F(1) if square > HUGE else square / (cell.n * cell.n))
            cell.rate = self.rate(cell)
            reach = reach + square * cell.rate
        if not self.normalized:
            return reach
        self.norm[lane] += float(weight) * float(norm)
        self.weight[lane] += float(weight)
        self.factor = self.average(F(self.weight[lane]), F(self.norm[lane]))
        return reach * self.factor

    @property
    def rooted(self) -> bool:
        """True for the default exponent, with which powers are square roots."""
        return bool(self.power_t == F(0.5))

    def rescale(self, cell: Cell, size: np.float32) -> None:
        if size <= cell.n:
            return
        if cell.n > 0 and self.rooted:
            ratio = cell.n / size
            cell.w = cell.w * (ratio if self.adaptive else ratio * ratio)
        elif cell.n > 0:
            ratio = size / cell.n
            cell.w = cell.w * power(ratio * ratio, self.power_t - F(1))
        cell.n = size

    def rate(self, cell: Cell) -> np.float32:
        rate = F(1)
        if self.adaptive:
            rate = F(1) / np.sqrt(cell.a) if self.rooted else power(cell.a, -self.power_t)
        if self.normalized and self.rooted:
            inverse = F(1) / cell.n
            return rate * (inverse if self.adaptive else inverse * inverse)
        return rate * power(cell.n * cell.n, self.power_t - F(1)) if self.normalized else rate

    def average(self, weight: np.float32, norm: np.float32) -> np.float32:
        if not self.rooted:
            return power(norm / weight, self.power_t - F(1))
        return np.sqrt(weight / norm) if self.adaptive else weight / norm

    # -- penalties ---------------------------------------------------------------------------------

    def penalize(self, p: np.float32, y: np.float32, step: np.float32) -> np.float32:
        slope = float(self.loss.slope(p, y, self.low, self.high))
        eta = 0.0
        if abs(slope) > 1e-8:
            eta = -float(step) / slope
            self.contraction *= 1 - self.l2 * eta
        self.gravity += eta * self.l1
        return step / F(self.contraction)

    def materialize(self) -> None:
        for cell in self.table.values():
            cell.w = self.shrunk(cell.w) * F(self.contraction)
        self.untouched = self.shrunk(self.untouched) * F(self.contraction)
        self.gravity, self.contraction = 0.0, 1.0

    def account(self, weight: np.float32, *, labelled: bool, holdout: bool) -> None:
        self.t += float(weight)
        if not labelled or holdout:
            self.set_aside[0 if labelled else 1] += float(weight)

    def dense(self, cells: int) -> np.ndarray[tuple[int, int, int], np.dtype[np.float32]]:
        """Return the table in the layout of the engine: float32[cells, 4, lanes]."""
        dense = np.zeros((cells, 4, self.lanes), np.float32)
        dense[:, 0] = self.untouched
        dense[:, 1] = self.initial_t if self.adaptive else 0
        for (place, lane), cell in self.table.items():
            dense[place, :, lane] = cell.w, cell.a, cell.n, cell.rate
        return dense


@dataclass(frozen=True)
class Row:
    """Result of an event of one line."""

    loss: np.float32
    labelled: bool
    n_features: int
    raw: np.float32
    prediction: np.float32


@dataclass
class Regressor:
    """Learns events of one line each."""

    featurizer: Featurizer
    learner: Learner
    link: str = "identity"
    binary: bool = False
    training: bool = True

    def event(self, event: Event, *, holdout: bool = False) -> Row:
        (line,) = event
        self.featurizer.see(event)
        example = self.featurizer.action(line)
        labelled = line.label is not None
        label = UNLABELLED if line.label is None else F(line.label)
        weight, initial = F(line.weight), F(line.initial)
        if labelled and self.training and not holdout:
            raw, p = self.learner.learn(
                example.features, label, weight, initial=initial, squares=example.squares
            )
        else:
            raw = self.learner.raw(example.features, initial=initial)
            p = self.learner.clip(raw)
        loss = F(0)
        if labelled and weight > 0:
            loss = self.learner.loss.value(p, label, self.learner.low, self.learner.high) * weight
        prediction = apply_link(self.link, p)
        if self.binary:
            prediction = F(1) if prediction > 0 else F(-1)
            if labelled and abs(label) == 1:
                loss = weight * F(label != prediction)
        self.learner.account(weight, labelled=labelled, holdout=holdout)
        return Row(loss, labelled, example.n_own + example.n_crossed, raw, prediction)
