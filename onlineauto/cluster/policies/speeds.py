"""``Speeds``: the speed of each kind of job by workers and servers, fitted to the history."""

from __future__ import annotations

from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.cluster.policies.policy import ClusterPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Floats, Ints, Situation

TERMS: Final = 5
"""Number of coefficients of a kind."""
_UNKNOWN: Final = (0.8, 0.1, 0.05, 0.03, 0.02)
"""Coefficients of a kind without observations, relative to one worker with one server."""
_SUPPORTS: Final = [support for size in range(1, TERMS + 1) for support in combinations(range(TERMS), size)]
_KEPT: Final = 512
"""Number of latest observations of a kind that a fit uses."""
_EXTREME: Final = 1e100
"""Observations with more slots per unit of work, or more units per slot, than this are ignored."""
_WILD: Final = 1e15
"""Times per unit of work are clipped to this factor above and below the median of their kind."""
_PRIOR: Final = 0.05
"""Weight of `_UNKNOWN` in a fit, in observations: it decides only where there are no observations."""


def terms(workers: Floats | Ints, servers: Floats | Ints) -> Floats:
    """Return the terms of the model of Optimus, 1/w, 1, w/u, w and u, for w workers and u servers.

    The time of one unit of work is a sum of the terms with coefficients of at least 0. The work is divided
    among w workers (1/w) except for a serial part (1); w workers share u servers (w/u); and synchronization
    grows with both (w, u). Speed therefore has a maximum, past which more workers make a job slower. Without
    servers, w/u and u are 0. The result, float64[..., 5], is infinite without workers.
    """
    w, u = np.asarray(workers, np.float64), np.asarray(servers, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        shared = np.where(u > 0, w / u, 0.0)
        return np.stack([1 / w, np.ones_like(w), shared, w, u], -1)


def fit_slowness(rows: Floats, slowness: Floats, weights: Floats | None = None) -> Floats:
    """Return the non-negative coefficients that explain times per unit of work with the least error.

    Errors are relative to the times. The model is linear in five coefficients, so the least-squares fit of
    each of the 31 subsets is computed; the exact answer is the best fit without a negative coefficient.
    Relative errors give fast observations more weight, which makes all times too short by the variance of the
    noise. The answer is therefore scaled so that speeds are right on average.

    `rows`, float64[n, 5], are the `terms` of each observation; `slowness`, float64[n], its time per unit of
    work; and `weights`, float64[n], the weights of squared errors, 1 by default.

    >>> workers, servers = np.array([1, 2, 4, 8, 2, 1]), np.array([1, 1, 2, 4, 4, 3])
    >>> true = np.array([0.6, 0.1, 0.2, 0.0, 0.1])
    >>> rows = terms(workers, servers)
    >>> fit_slowness(rows, rows @ true).round(6)
    array([0.6, 0.1, 0.2, 0. , 0.1])
    """
    target = np.ones(len(rows)) if weights is None else np.sqrt(weights)
    scaled = rows * (target / slowness)[:, None]
    squares, products = scaled.T @ scaled, scaled.T @ target
    answer, least = np.zeros(TERMS), 0.0  # the error of all zeros, except for a constant
    for support in map(list, _SUPPORTS):
        solution = np.linalg.lstsq(squares[np.ix_(support, support)], products[support], rcond=1e-12)[0]
        error = float(
            solution @ squares[np.ix_(support, support)] @ solution - 2 * solution @ products[support]
        )
        if solution.min() >= 0 and error < least - 1e-12:
            answer, least = np.zeros(TERMS), error
            answer[support] = solution
    ratio = float((scaled @ answer) @ target / (target @ target))
    return answer / ratio if ratio > 0 else answer


class Speeds:
    """The speeds of jobs by kind, known or learned from the history.

    Parameters
    ----------
    coefficients : mapping, optional
        Five numbers for each kind, by name; see `terms`. The coefficients of all other kinds are learned.

    Examples
    --------
    >>> speeds = Speeds({"study": [1, 0, 0, 0, 0]})  # twice the workers, twice the speed
    >>> float(speeds.time_per_unit("study", 4, 0))
    0.25
    """

    def __init__(self, coefficients: Mapping[str, Iterable[float]] | None = None) -> None:
        self._given = {
            kind: np.array(list(numbers), np.float64) for kind, numbers in (coefficients or {}).items()
        }
        self._fitted: dict[str, Floats] = {}
        self._seen: dict[str, list[tuple[float, float, float]]] = {}
        # By job, since its last progress: time, time × workers, time × servers.
        self._waiting: dict[str, Floats] = {}

    def observe(self, records: Iterable[Record]) -> None:
        """Add observations of jobs that worked in a slot. An endless job that has kept up is ignored.

        The time of slots without progress is added to the next slot with progress, because a unit of work may
        take longer than a slot.
        """
        for record in records:
            progress = record.done - record.before
            kept_up = record.endless and record.done >= record.total
            if record.kind in self._given or record.workers == 0 or record.used <= 0 or kept_up:
                continue
            worked = record.used * np.array([1.0, record.workers, record.servers])
            worked = worked + self._waiting.pop(record.job, 0.0)
            if progress <= 0:
                self._waiting[record.job] = worked
                continue
            time, workers, servers = worked.tolist()
            observed = workers / time, servers / time, time / progress
            if not (all(map(isfinite, observed)) and 1 / _EXTREME < observed[2] < _EXTREME):
                continue
            observations = self._seen.setdefault(record.kind, [])
            observations.append(observed)
            del observations[:-_KEPT]
            self._fitted.pop(record.kind, None)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of jobs whose speeds are known: given as coefficients, or observed."""
        return tuple(sorted({*self._given, *self._seen}))

    def coefficients(self, kind: str) -> Floats:
        """Return the five coefficients of a kind: float64[5]."""
        if kind in self._given:
            return self._given[kind]
        if kind not in self._fitted:
            self._fitted[kind] = self._fit(kind)
        return self._fitted[kind]

    def _fit(self, kind: str) -> Floats:
        observations = np.array(self._seen.get(kind, []), np.float64).reshape(-1, 3)
        unknown = np.array(_UNKNOWN)
        if not len(observations):
            return unknown
        rows = terms(observations[:, 0], observations[:, 1])
        scale = float(np.median(observations[:, 2] / (rows @ unknown)))
        # The fit works with times near 1, whose squares do not overflow. A power of two rounds nothing.
        unit = float(2.0 ** np.round(np.log2(scale)))
        times = np.clip(observations[:, 2] / unit, 1 / _WILD, _WILD)
        spread = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
        guessed = terms(spread, spread if observations[:, 1].any() else 0 * spread)
        # The prior has a small weight: it decides only where there are no observations.
        weights = np.repeat([1.0, _PRIOR / len(spread)], [len(rows), len(spread)])
        times = np.concatenate([times, scale / unit * (guessed @ unknown)])
        return unit * fit_slowness(np.concatenate([rows, guessed]), times, weights)

    def table(self, kinds: tuple[str, ...]) -> Floats:
        """Return the coefficients of some kinds, a row for each: float64[len(kinds), 5]."""
        return np.stack([self.coefficients(kind) for kind in kinds])

    def time_per_unit(self, kind: str, workers: float, servers: float) -> Floats:
        """Return the time that one unit of work of a kind takes; infinity without workers."""
        return _time(self.coefficients(kind), np.array(float(workers)), np.array(float(servers)))

    def times_per_unit(self, situation: Situation, workers: Ints, servers: Ints) -> Floats:
        """Return the time of one unit of work for given numbers of workers and servers: float64[B, J].

        The time is infinite without workers, and without servers if the job takes any.
        """
        time = _time(self.table(situation.kinds)[situation.kind], workers, servers)
        alone = (workers == 0) | (situation.takes_servers & (servers == 0))
        return np.where(alone, np.inf, time)


def _time(coefficients: Floats, workers: Ints | Floats, servers: Ints | Floats) -> Floats:
    """Return the time of one unit of work: the weighted sum of `terms`, or infinity without workers."""
    works = np.asarray(workers) > 0
    time = (coefficients * terms(np.maximum(workers, 1), servers)).sum(-1)
    return np.where(works, np.maximum(time, 1e-12), np.inf)


class Modelled(ClusterPolicy):
    """Base class of policies that use speeds."""

    def __init__(self, speeds: Speeds | None = None) -> None:
        self.speeds = Speeds() if speeds is None else speeds

    def observe(self, records: Sequence[Record]) -> None:
        """Learn speeds from the slot that has ended."""
        self.speeds.observe(records)
