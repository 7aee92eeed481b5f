"""Summarize and print the measurements of `bench.quality`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.quality.logs import GROUPS
from bench.quality.peers import LIGHTGBM
from bench.quality.runs import Spread, spread

WINDOWS = ("whole", "second half", "0-1,000", "2,000-5,000")
"""The events whose rewards are averaged."""

BASE, LINEAR, BEST = "-q ::", "context x action", "best fixed"
"""What all others are compared with; the second is one of the fixed configs."""

SLOW, MEAN = "-q :: -l .05", "best mean action"
"""The first at a tenth of the learning rate, and a learner without context."""

SIMPLE = (BASE, LINEAR, SLOW, MEAN)
"""What an ensemble should never be behind."""

_BEHIND, _LESS = 0.005, 0.002
"""Differences of rewards that are listed: from the best of `SIMPLE`, and from other variants."""

Windows = tuple[float | None, ...]


def rewards_in(earned: NDArray[np.float64], events: int) -> Windows:
    """Mean reward in each of `WINDOWS`; none where not all its events were run.

    >>> rewards_in(np.arange(5000.0), 5000)
    (2499.5, 3749.5, 499.5, 3499.5)
    >>> rewards_in(np.arange(5000.0), 9000)
    (None, None, 499.5, 3499.5)
    """
    parts = ((0, events), (events // 2, events), (0, 1000), (2000, 5000))
    return tuple(
        float(earned[begin:end].mean()) if begin < end <= len(earned) else None for begin, end in parts
    )


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one contender."""

    log: str
    seed: int
    who: str
    rewards: Windows
    scores: Windows  # 0 is `BASE`, 1 is `BEST`, each in the same events
    seconds: float  # of CPU
    changes: int | None = None  # of champion
    detail: str = ""  # which of the fixed configs is the best


@dataclass(frozen=True, slots=True)
class Row:
    """All seeds of one contender on one log."""

    log: str
    who: str
    rewards: Windows  # medians
    scores: tuple[Spread | None, ...]
    changes: Spread | None
    seconds: float  # median
    detail: str  # under the first seed


@dataclass(frozen=True, slots=True)
class Mean:
    """The mean over logs of one group and kind, under each seed."""

    group: str
    who: str
    logs: int
    rewards: Windows
    scores: tuple[Spread | None, ...]
    seconds: float  # summed over logs, median


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _spread(values: Iterable[float | None]) -> Spread | None:
    known = _known(values)
    return spread(known) if known else None


def _median(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return float(np.median(known)) if known else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; none, if one of the values is missing."""
    known = _known(values)
    return float(np.mean(known)) if len(known) == len(values) > 0 else None


def rows(measured: Iterable[Measured]) -> list[Row]:
    """One row for each log and contender."""
    groups: dict[tuple[str, str], list[Measured]] = {}
    for each in measured:
        groups.setdefault((each.log, each.who), []).append(each)
    return [
        Row(
            log=log,
            who=who,
            rewards=tuple(map(_median, zip(*(each.rewards for each in some), strict=True))),
            scores=tuple(map(_spread, zip(*(each.scores for each in some), strict=True))),
            changes=_spread(each.changes for each in some),
            seconds=float(np.median([each.seconds for each in some])),
            detail=some[0].detail,
        )
        for (log, who), some in groups.items()
    ]


def _group(log: str) -> str:
    """Return the group of a log: that of its set, and how it was logged."""
    name, _, how = log.rpartition("-")
    group = next((group for group, names in GROUPS.items() if name in names), "other")
    return f"{group}, {'uniform' if how == 'u' else 'ε-greedy'}"


def means(measured: list[Measured]) -> list[Mean]:
    """Return the means over logs, for each group and contender."""
    found = []
    for group in dict.fromkeys(_group(each.log) for each in measured):
        for who in dict.fromkeys(each.who for each in measured):
            some = [each for each in measured if each.who == who and _group(each.log) == group]
            seeds = [[each for each in some if each.seed == seed] for seed in sorted({x.seed for x in some})]
            if seeds:
                found.append(_mean_of(group, who, seeds))
    return found


def _mean_of(group: str, who: str, seeds: list[list[Measured]]) -> Mean:
    def over_logs(field: str, window: int) -> list[float | None]:
        return [_mean([getattr(each, field)[window] for each in some]) for some in seeds]

    windows = range(len(WINDOWS))
    return Mean(
        group=group,
        who=who,
        logs=len(seeds[0]),
        rewards=tuple(_median(over_logs("rewards", window)) for window in windows),
        scores=tuple(_spread(over_logs("scores", window)) for window in windows),
        seconds=float(np.median([sum(each.seconds for each in some) for some in seeds])),
    )


def comparisons(measured: list[Measured], who: str, others: Sequence[str] = ()) -> list[str]:
    """Say where a contender is behind LightGBM, simple learners, `others` or bins made by hand."""
    table = {(row.log, row.who): row for row in rows(measured)}
    ours = [row for row in table.values() if row.who == who]
    found = []
    behind: dict[str, float] = {}
    rivals = 0
    for row in ours:
        best = [table[row.log, peer].rewards for peer in LIGHTGBM if (row.log, peer) in table]
        rivals += bool(best)
        gaps = [max(_known(each[w] for each in best), default=0.0) - (row.rewards[w] or 0) for w in (0, 1)]
        if best and max(gaps) > 0:
            behind[row.log] = max(gaps)
    if rivals:
        found.append(f"behind LightGBM, whole or second half: {_worst(behind, rivals)}")
    rewards = {(each.log, each.seed, each.who): each.rewards[0] or 0 for each in measured}
    runs = [(log, seed) for log, seed, each in rewards if each == who]
    simplest = {run: max(rewards[*run, each] for each in SIMPLE) for run in runs}
    gaps_of = partial(_mean_gaps, {run: rewards[*run, who] for run in runs})
    found.append(f"more than {_BEHIND} below the best of {', '.join(SIMPLE)}: {gaps_of(simplest, _BEHIND)}")
    for other in others:
        theirs = {run: rewards[*run, other] for run in runs}
        found.append(f"more than {_LESS} below {other}: {gaps_of(theirs, _LESS)}")
    for row in ours:
        binned = table.get((row.log.replace("-n-", "-"), who))
        if binned not in (None, row):
            gap = (binned.rewards[0] or 0) - (row.rewards[0] or 0)
            found.append(f"{row.log}: {gap:+.3f} below bins by hand")
    return found


def _mean_gaps(ours: dict[tuple[str, int], float], theirs: dict[tuple[str, int], float], least: float) -> str:
    """Say on which logs ours is below theirs by more than `least`, in the mean over seeds."""
    gaps: dict[str, list[float]] = {}
    for run, reward in ours.items():
        gaps.setdefault(run[0], []).append(theirs[run] - reward)
    mean = {log: float(np.mean(some)) for log, some in gaps.items()}
    return _worst({log: gap for log, gap in mean.items() if gap > least}, len(mean))


def _worst(gaps: dict[str, float], logs: int) -> str:
    text = f"{len(gaps)} of {logs}"
    listed = sorted(gaps, key=lambda log: -gaps[log])
    return text + "".join(f", {log} by {gaps[log]:.3f}" for log in listed)


def verdicts(averages: list[Mean], who: str) -> dict[str, bool]:
    """Return each target of the search on the sets that it was tuned on, and whether it is met."""
    mean = {each.group: each for each in averages if each.who == who}
    found = {}
    for kind, least in (("uniform", 0.85), ("ε-greedy", 0.80)):
        each = mean.get(f"tuned, {kind}")
        if each and each.scores[0] and each.scores[1]:
            found[f"mean of {kind} logs at least {least:.2f}"] = each.scores[0].median >= least
            found[f"second half of {kind} logs at least 1.00"] = each.scores[1].median >= 1
    return found
