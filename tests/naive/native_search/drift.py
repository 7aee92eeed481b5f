"""Drift: whether the champion predicts worse than before, by ADWIN over its progressive loss.

At every review, and whenever there are 256 losses, the search passes the champion's mean losses of 32
events each since the last time. The first 64 means raise no alarm, since a model learns the most from its
first events. The unit of all later ones is 3.5 times the mean of the second half of them, and a tenth of
the mean of the first half. Then a window of means grows until some cut divides it into an older and a newer
part whose means differ by more than chance allows. It is an alarm if the newer part is worse. In either
case a new window begins.

ADWIN keeps its window in buckets of 1, 2, 4, ... means, at most five of a size; when there are six, the two
oldest become one of twice the size. Only the boundaries of buckets are tried as cuts.

Source: Bifet and Gavaldà, *Learning from Time-Changing Data with Adaptive Windowing*, 2007, as the library
river has it: `ADWIN(delta=0.002, clock=1)`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

LOSSES_OF_A_LOOK = 256
FIRST_MEANS = 64
DELTA = 0.002
BUCKETS_OF_A_SIZE = 5
SHORTEST_HALF = 5
GRACE = 10


@dataclass(frozen=True)
class Bucket:
    """Consecutive numbers: their count, sum, and sum of squared distances from their mean."""

    n: int
    total: float
    spread: float

    @property
    def mean(self) -> float:
        return self.total / self.n


def together(one: Bucket, other: Bucket) -> Bucket:
    gap = one.mean - other.mean
    between = one.n * other.n * gap * gap / (one.n + other.n)
    return Bucket(one.n + other.n, one.total + other.total, one.spread + other.spread + between)


class Window:
    """The numbers since the last drift."""

    def __init__(self) -> None:
        self.sizes: list[list[Bucket]] = [[]]
        """Buckets of 1, of 2, of 4, ... numbers, the oldest of each size first."""
        self.n = 0
        self.total = 0.0
        self.spread = 0.0

    @property
    def mean(self) -> float:
        return self.total / max(self.n, 1)

    def update(self, x: float) -> bool:
        """Take a number in; return whether the window had to be cut."""
        self.add(x)
        cut = False
        while self.n > GRACE and self.differs():
            self.forget_oldest()
            cut = True
        return cut

    def add(self, x: float) -> None:
        if self.n > 0:
            gap = self.total / self.n - x
            self.spread += self.n * gap * gap / (self.n + 1)
        self.n, self.total = self.n + 1, self.total + x
        self.sizes[0].append(Bucket(1, x, 0.0))
        for size, buckets in enumerate(self.sizes):
            if len(buckets) <= BUCKETS_OF_A_SIZE:
                return
            if size + 1 == len(self.sizes):
                self.sizes.append([])
            oldest, next_oldest = buckets.pop(0), buckets.pop(0)
            self.sizes[size + 1].append(together(oldest, next_oldest))

    def differs(self) -> bool:
        """Return whether the means before and after some cut differ."""
        n, total = 0, 0.0
        oldest_first = list(chain.from_iterable(reversed(self.sizes)))
        for bucket in oldest_first[:-1]:
            n, total = n + bucket.n, total + bucket.total
            rest = self.n - n
            if min(n, rest) < SHORTEST_HALF:
                continue
            gap = total / n - (self.total - total) / rest
            if abs(gap) > self.chance(n, rest):
                return True
        return False

    def chance(self, n: int, rest: int) -> float:
        """Return the largest difference between the means of two halves that chance explains."""
        doubt = math.log(2.0 * math.log(self.n) / DELTA)
        shortness = 1.0 / (n - SHORTEST_HALF + 1) + 1.0 / (rest - SHORTEST_HALF + 1)
        variance = self.spread / self.n
        return math.sqrt(2.0 * shortness * variance * doubt) + 2.0 / 3.0 * doubt * shortness

    def forget_oldest(self) -> None:
        oldest = self.sizes[-1].pop(0)
        while len(self.sizes) > 1 and not self.sizes[-1]:
            self.sizes.pop()
        self.n, self.total = self.n - oldest.n, self.total - oldest.total
        gap = oldest.mean - self.total / self.n
        self.spread -= oldest.spread + oldest.n * self.n * gap * gap / (oldest.n + self.n)


class Drift:
    """Watches the losses of the champion."""

    def __init__(self) -> None:
        self.window = Window()
        self.n = 0
        self.unit = 0.0

    def alarms(self, means: Sequence[float]) -> bool:
        """Take in mean losses, in order; return whether they became larger."""
        alarm = False
        for mean in means:
            self.n += 1
            if self.n <= FIRST_MEANS or self.unit == 0.0:
                self.unit += (3.5 if self.n > FIRST_MEANS // 2 else 0.1) * mean / (FIRST_MEANS // 2)
                continue
            before = self.window.mean
            if self.window.update(min(mean / self.unit, 1.0)):
                alarm = alarm or self.window.mean > before
                self.window = Window()
        return alarm
