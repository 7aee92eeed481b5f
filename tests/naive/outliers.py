"""Outliers: numbers that are orders of magnitude beyond all others of their kind."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

MANY, FEW, FIRST = 16, 4, 64
USUAL = 7
GAP, NARROW = 15, 7


def exponent(number: float) -> int:
    """Return e for a number in [2^(e - 1), 2^e), but at least -9."""
    return max(math.frexp(number)[1], -9)


@dataclass
class Size:
    """The typical size of numbers of one kind."""

    typical: int | None = None
    known: int = 0
    above: int = 0
    below: int = 0
    since: int = 0

    def judge(self, number: float, *, assumed: int | None = None, first: bool = True, gap: int = GAP) -> str:
        if number == 0 or not math.isfinite(number):
            return "ordinary"
        size = exponent(number)
        if self.typical is None:
            self.typical, self.known = (size, 0) if assumed is None else (assumed, MANY)
        gap += 0 if self.known >= FEW else 2
        if size > self.typical + gap:
            self.above += 1
            if self.above <= self.known:
                return "beyond"
            self.begin(size)
            return "ordinary"
        if first and self.known < MANY and size < self.typical - gap:
            self.below += 1
            if self.below <= self.known:
                return "ordinary"
            self.begin(size)
            return "ruined"
        self.typical += size > self.typical
        if self.known < MANY:
            self.known += 1
        else:
            self.since += 1
            if self.since % 256 == 0 and self.above > 0:
                self.above -= 1
        return "ordinary"

    def begin(self, size: int) -> None:
        self.typical, self.known = size, min(self.known + 1, MANY)
        self.above = self.below = self.since = 0


@dataclass
class Outliers:
    """The typical sizes of all numbers of a stream."""

    label: Size = field(default_factory=Size)
    weight: Size = field(default_factory=Size)
    probability: Size = field(default_factory=Size)
    values: dict[Hashable, Size] = field(default_factory=lambda: defaultdict(Size))
    any_value: Size = field(default_factory=Size)
    squares: bool = False
    """Whether the step of a weight grows with the square of the value, as with --sgd."""
    learnt: int = 0
    largest: float = 0.0
    """The largest label learnt, in size."""

    def find(
        self, label: float, weight: float, probability: float, values: Sequence[tuple[Hashable, float]]
    ) -> str:
        """Return the kind of an outlier in an event to learn, "" if there is none."""
        first = self.learnt < FIRST
        usual = None if first else USUAL
        assumed = max(exponent(self.largest), 1) if self.largest and not first else usual
        inverse = 1 / probability if probability > 0 else 0.0
        verdicts = {
            "cost": self.label.judge(label, assumed=assumed, first=first or self.label.known < FEW),
            "weight": self.weight.judge(weight, assumed=usual, first=first),
            "probability": self.probability.judge(inverse, assumed=usual, first=first),
        }
        of_values = []
        largest = max((abs(value) for _, value in values), default=0.0)
        unseen = None if first else max(self.any_value.typical or USUAL, USUAL)
        for feature, value in values:
            known = self.values[feature].typical is not None
            if value != 0 and (abs(value) > 1 or (first and (known or (self.squares and value != 1)))):
                size = abs(value) if known else max(abs(value), 1.0)
                gap = NARROW if self.squares and not first else GAP
                of_values.append(self.values[feature].judge(size, assumed=unseen, first=first, gap=gap))
        if first or largest > 1:
            self.any_value.judge(largest, assumed=usual, first=first)
        if "ruined" in (*verdicts.values(), *of_values):
            self.largest = 0.0
            return "begins again"
        verdicts["value"] = "beyond" if "beyond" in of_values else ""
        found = next((what for what, verdict in verdicts.items() if verdict == "beyond"), "")
        if not found:
            self.learnt += 1
            self.largest = max(self.largest, abs(label))
        return found
