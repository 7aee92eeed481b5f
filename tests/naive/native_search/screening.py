"""Screening: estimated gains of many interactions, at the cost of about one action.

An interaction that the champion lacks has a small model of the champion's residuals: for every feature their
mean, shrunk as if ten more events had the residual 0. Its gain is the reduction of the squared residuals,
each predicted before it was known. The gain of removing an interaction of the champion is the loss of its
terms.

Gains prove nothing: they order the proposals.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tests.naive.native_search.configs import Interaction
    from tests.naive.native_search.events import Feature
    from tests.naive.native_search.features import Examples
    from tests.naive.native_search.options import Options
    from tests.naive.native_search.regressor import Labels, Regressor

F = np.float32
ZERO = F(0)
CLOSELY, STRIDE, MANY = 1024, 4, 256
"""After `CLOSELY` events, or for more than `MANY` interactions, one event in `STRIDE` is screened."""
LEFT_AT_REVIEW, LEFT_AT_CHANGE = 0.95, 0.3
"""Factors of a gain when interactions are chosen again, and when the champion changes."""
MOST_CELLS = 2**18


@dataclass(slots=True)
class Residual:
    """Of one feature: Σ x·residual and Σ x², x being a part of the largest |x| seen."""

    total: np.float32 = ZERO
    count: np.float32 = ZERO
    largest: np.float32 = ZERO


class Screening:
    """The interactions that are screened, and their gains."""

    def __init__(self, options: Options) -> None:
        self.gains: dict[Interaction, float] = {}
        self.held: frozenset[Interaction] = frozenset()
        """Interactions of the champion."""
        self.seen = 0
        self.table: dict[int, Residual] = {}
        """Residuals of all features: one table for all interactions."""
        self.mask = min(2**options.bit_precision, MOST_CELLS) - 1

    def choose(self, pool: Sequence[Interaction], held: Collection[Interaction]) -> None:
        """Screen these from now on; gains of what the champion has come to have, or lost, begin anew."""
        turned = self.held ^ set(held)
        known = self.gains
        self.gains = {each: 0.0 if each in turned else LEFT_AT_REVIEW * known.get(each, 0.0) for each in pool}
        self.held = frozenset(held)

    def fade(self) -> None:
        """Discount the evidence of the previous champion, so that that of the new one soon outweighs it."""
        self.gains = {each: LEFT_AT_CHANGE * gain for each, gain in self.gains.items()}
        self.seen = 0

    def observe(
        self,
        examples: Examples,
        action: int,
        champion: Regressor,
        score: np.float32,
        label: np.float32,
        labels: Labels,
    ) -> None:
        """See what the interactions would have changed about an action that is about to be learnt."""
        if not self.gains:
            return
        self.seen += 1
        stride = 1 if self.seen <= CLOSELY and len(self.gains) <= MANY else STRIDE
        if self.seen % stride:
            return
        loss, residual = labels.loss_of(score, label), labels.residual(score, label)
        for names in self.gains:
            if not all(name in examples.groups[action] for name in names):
                continue
            features = examples.crossed(names, action)
            if names in self.held:
                gain = loss - labels.loss_of(score - champion.part(features), label)
            else:
                left = residual - self._explain(features, residual)
                gain = residual * residual - left * left
            self.gains[names] += float(stride) * float(gain)

    def _explain(self, features: Sequence[Feature], residual: np.float32) -> np.float32:
        """Predict a residual by the features of an interaction, and then learn it."""
        explained = F(0)
        for place, value in features:
            known = self.table.setdefault(place & self.mask, Residual())
            size = abs(value)
            if size > known.largest:
                ratio = known.largest / size
                known.total, known.count = known.total * ratio, known.count * (ratio * ratio)
                known.largest = size
            if size > 0:
                x = value / known.largest
                explained = explained + x * known.total / (known.count + F(10))
                known.total = known.total + x * residual
                known.count = known.count + x * x
        return explained / F(max(len(features), 1))
