"""Contextual-bandit sets with little signal, many actions, vectors or rare rewards.

Nine are generated. `route`, `headlines` and `swissmetro` are real: texts enter as hashed words, without the
texts themselves. Only `route` and `headlines` are committed.
"""

from __future__ import annotations

import re
from functools import partial
from html import unescape
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

from datasets import sources
from datasets.bandit_set import BanditSet, one_best, shuffled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

__all__ = ["COMMITTED", "WEAK_SETS", "hashed", "words"]

COMMITTED = ("route", "headlines")
"""The sets whose files are committed."""

_SIZE = 64
_HEADLINES, _LEAST_VIEWS = 4, 500


class _Package(NamedTuple):
    """A headline of a test, and how often it was seen and clicked."""

    codes: str
    views: int
    clicks: int
    week: int


def null() -> BanditSet:
    """Rewards that neither the context nor the action changes."""
    draw, n = np.random.default_rng(1), 10_000
    a, b, x = draw.integers(8, size=n), draw.integers(50, size=n), draw.normal(size=n)
    contexts = [f"|a a{a[i]} |b b{b[i]} |n x:{x[i]:.3f}" for i in range(n)]
    return BanditSet(contexts, (draw.random((n, 8)) < 0.3).astype(float), n)


def many(actions: int) -> BanditSet:
    """Which of many items is clicked: rates are near 0.16, and the segment of a visitor hardly moves them."""
    draw, n = np.random.default_rng(actions), 20_000
    segment, device, user = (draw.integers(k, size=n) for k in (6, 4, 500))
    rates = 0.155 + 0.018 * draw.normal(size=actions) + 0.012 * draw.normal(size=(6, actions))[segment]
    contexts = [f"|s s{segment[i]} |d d{device[i]} |u u{user[i]}" for i in range(n)]
    items = [f"|Z item_{number}" for number in draw.permutation(1000)[:actions]]
    return BanditSet(contexts, (draw.random(rates.shape) < rates).astype(float), n, lines=[items] * n)


def varying(shown: int, current: int, rate: float, spread: float) -> BanditSet:
    """Which of the items on show is clicked: half of them are replaced from the first event to the last."""
    draw, n = np.random.default_rng(shown), 20_000
    pool = 2 * current
    appeal, kind = rate + spread * draw.normal(size=pool), draw.integers(8, size=pool)
    of_segment = 0.02 * draw.normal(size=(10, 8))
    segment, user = draw.integers(10, size=n), draw.integers(2000, size=n)
    items = np.array([draw.choice(current, shown, replace=False) + i * current // n for i in range(n)])
    rates = appeal[items] + of_segment[segment[:, np.newaxis], kind[items]]
    contexts = [f"|s s{segment[i]} |u u{user[i]}" for i in range(n)]
    lines = [[f"|i i{item} |c c{kind[item]}" for item in row] for row in items]
    return BanditSet(contexts, (draw.random(rates.shape) < rates).astype(float), n, lines=lines)


def clicks() -> BanditSet:
    """Which of ten banners is clicked, with rates of 1 to 3 percent; the first has the highest rate."""
    draw, n = np.random.default_rng(1), 100_000
    page, region, hour = (draw.integers(k, size=n) for k in (8, 12, 24))
    sizes = np.sort(0.35 * draw.normal(size=10))[::-1] + 0.25 * draw.normal(size=(8, 10))[page]
    sizes = sizes + 0.2 * draw.normal(size=(12, 10))[region]
    user = draw.integers(3000, size=n)
    contexts = [f"|p p{page[i]} |r r{region[i]} |h h:{hour[i]} |u u{user[i]}" for i in range(n)]
    return BanditSet(contexts, (draw.random(sizes.shape) < 0.015 * np.exp(sizes)).astype(float), n)


def vector(signal: float) -> BanditSet:
    """Which of nine models answers right; `signal` is how much four hidden numbers move a model's rate.

    Two other hidden numbers move the rates of all models alike, and models mostly fail together.
    """
    draw, n, models = np.random.default_rng(1), 5600, 9
    hidden = draw.normal(size=(n, 8))
    seen = hidden @ draw.normal(size=(8, _SIZE)) / np.sqrt(8) + 0.7 * draw.normal(size=(n, _SIZE))
    rates = 0.56 + 0.03 * draw.normal(size=models) + 0.15 * np.tanh(hidden[:, :1] + hidden[:, 1:2])
    rates = rates + signal * hidden[:, 2:6] @ draw.normal(size=(4, models)) / 2
    luck = np.where(draw.random(rates.shape) < 0.6, draw.random((n, 1)), draw.random(rates.shape))
    length = draw.integers(4, size=n)
    contexts = [f"|b b{bin_} {numbers}" for bin_, numbers in zip(length, _vectors(seen), strict=True)]
    return BanditSet(contexts, (luck < rates).astype(float), n)


def book() -> BanditSet:
    """Which of eight rooms is booked, in the order of time: two seasons, and a slow drift."""
    draw, n, rooms = np.random.default_rng(1), 15_000, 8
    time = np.linspace(0, 1, n)
    guest, channel = draw.integers(5, size=n), draw.integers(7, size=n)
    lead, nights = draw.exponential(40, n), 1 + draw.poisson(2, n)
    sizes = 1.2 * draw.gumbel(size=(n, rooms)) + np.outer(time, draw.normal(size=rooms))
    sizes += 0.7 * draw.normal(size=(5, rooms))[guest] + 0.6 * draw.normal(size=(7, rooms))[channel]
    season, drift = np.sin(4 * np.pi * time)[:, np.newaxis], time[:, np.newaxis] - 0.5
    sizes += 0.8 * season * draw.normal(size=(5, rooms))[guest]
    sizes += 1.2 * drift * draw.normal(size=(7, rooms))[channel]
    sizes += 0.5 * np.outer(np.log1p(lead) - 3.3, draw.normal(size=rooms))
    sizes += 0.5 * np.outer(nights > 3, draw.normal(size=rooms))
    contexts = [
        f"|g g{guest[i]} |c c{channel[i]} |m m{int(24 * time[i]) % 12}"
        f" |n lead:{lead[i]:.3g} nights:{nights[i]} day:{time[i]:.4f}"
        for i in range(n)
    ]
    return BanditSet(contexts, one_best(sizes.argmax(axis=1).tolist(), rooms), n)


def route() -> BanditSet:
    """Which of three language models answers a prompt best, from 64 numbers: sums of its hashed words."""
    prompts = sources.pareto_bandit()
    prompts = [prompts[row] for row in shuffled(len(prompts))]
    models = sorted(prompts[0]["arms"])
    rewards = np.array([[prompt["arms"][model]["reward"] for model in models] for prompt in prompts])
    texts = [prompt["prompt"] for prompt in prompts]
    lengths = [len(text) for text in texts]
    quarter = np.searchsorted(np.quantile(lengths, (0.25, 0.5, 0.75)), lengths)
    numbers = _vectors(np.array([hashed(words(text)) for text in texts]))
    contexts = [f"|b b{bin_} {vector}" for bin_, vector in zip(quarter, numbers, strict=True)]
    names = [f"|Z {model.split('/')[-1]}" for model in models]
    return BanditSet(contexts, rewards, len(contexts), lines=[names] * len(contexts))


def headlines() -> BanditSet:
    """Which of four headlines of a test is clicked most, in the order of weeks; numbers stand for words.

    The reward is the share of clicks of a headline, divided by the highest share of the four.
    """
    tests: dict[str, dict[str, _Package]] = {}
    for row in sources.upworthy():
        packages = tests.setdefault(row["clickability_test_id"], {})
        views, clicks, week = (int(row[name]) for name in ("impressions", "clicks", "test_week"))
        codes = _codes(row["headline"])
        before = packages.get(codes, _Package(codes, 0, 0, week))
        packages[codes] = _Package(
            codes, before.views + views, before.clicks + clicks, min(before.week, week)
        )
    enough = [[each for each in test.values() if each.views >= _LEAST_VIEWS] for test in tests.values()]
    enough = [test for test in enough if len(test) >= _HEADLINES]
    draw, contexts, lines, shares = np.random.default_rng(1), [], [], []
    for test in sorted(enough, key=lambda test: min(each.week for each in test)):
        chosen = [test[at] for at in draw.permutation(len(test))[:_HEADLINES]]
        contexts.append(f"|w w{min(each.week for each in test) % 100}")
        lines.append([f"|t {each.codes} |l len:{each.codes.count(' ') + 1}" for each in chosen])
        shares.append([each.clicks / each.views for each in chosen])
    rewards = np.array(shares)
    rewards /= np.maximum(rewards.max(axis=1, keepdims=True), 1e-9)
    return BanditSet(contexts, rewards, len(contexts), lines=lines, logs="u")


def swissmetro() -> BanditSet:
    """Which of train, Swissmetro and car a traveller with a car chooses, from time, cost and headway."""
    rows = [row for row in sources.swissmetro() if row["CHOICE"] != "0" and row["CAR_AV"] == "1"]
    rows = [rows[at] for at in shuffled(len(rows))]
    names = ("PURPOSE", "WHO", "LUGGAGE", "AGE", "INCOME", "GA", "FIRST", "ORIGIN", "DEST")
    contexts = [" ".join(f"|{name[0].lower()} {row[name]}" for name in names) for row in rows]
    modes = (("TRAIN", ("TT", "CO", "HE")), ("SM", ("TT", "CO", "HE")), ("CAR", ("TT", "CO")))
    lines = [
        [
            f"|Z {mode} |c "
            + " ".join(f"{number}:{int(row[f'{mode}_{number}']) / 100:g}" for number in numbers)
            for mode, numbers in modes
        ]
        for row in rows
    ]
    return BanditSet(contexts, one_best([int(row["CHOICE"]) - 1 for row in rows], 3), len(rows), lines=lines)


def words(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case.

    >>> words("What's 2&nbsp;+ 2?")
    ["what's", '2', '2']
    """
    return re.findall(r"[a-z']+|\d+", unescape(text).lower())


def _codes(text: str) -> str:
    """Return the words of a text as numbers below 10,000, and whether it asks a question."""
    return " ".join(
        [*(f"w{crc32(word.encode()) % 10_000}" for word in words(text)), *["asks"] * ("?" in text)]
    )


def hashed(text: Iterable[str]) -> NDArray[np.float64]:
    """Return 64 sums of signs: each different word of a text adds 1 or -1 to one of them."""
    sums = np.zeros(_SIZE)
    for code in {crc32(word.encode()) for word in text}:
        sums[code % _SIZE] += 1 if code // _SIZE % 2 else -1
    return sums


def _vectors(rows: NDArray[np.float64]) -> list[str]:
    """Return rows of numbers of length 1, as features without names."""
    lengths = np.maximum(np.sqrt((rows * rows).sum(axis=1, keepdims=True)), 1e-9)
    return ["|v " + " ".join(f":{value:.2g}" for value in row) for row in rows / lengths]


WEAK_SETS: dict[str, Callable[[], BanditSet]] = {
    "route": route,
    "headlines": headlines,
    "swissmetro": swissmetro,
    "null": null,
    "sixty": partial(many, 60),
    "hundred": partial(many, 100),
    "vary": partial(varying, 6, 100, 0.16, 0.05),
    "varied": partial(varying, 4, 1500, 0.6, 0.12),
    "clicks": clicks,
    "vector-null": partial(vector, 0.0),
    "vector": partial(vector, 0.05),
    "book": book,
}
"""What makes each set, by name."""
