"""Searchers by the names of Optuna's samplers, for ``create_study(sampler=…)``.

An argument that has no counterpart is rejected by name. `seed` is the seed of the study; None means 0.

>>> from onlineauto.tune import create_study
>>> from onlineauto.tune.samplers import TPESampler
>>> create_study(sampler=TPESampler(seed=7)).settings.setting.seed
7
"""

from __future__ import annotations

import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.searchers.cmaes import CmaesSearcher
from onlineauto.tune.searchers.gp import GpSearcher
from onlineauto.tune.searchers.quasi import QuasiSearcher
from onlineauto.tune.searchers.random import RandomSearcher
from onlineauto.tune.searchers.tpe import TpeSearcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.searchers import Searcher

_LOG: Final = logging.getLogger("onlineauto")
_HERE_ANYWAY: Final = {
    "multivariate": (True, None),  # TPE models all parameters together,
    "group": (True, False),  # in groups by conditions,
    "constant_liar": (True,),  # and counts configs of running trials as bad
    "warn_independent_sampling": (True, False, None),
    "warn_asynchronous_seeding": (True, False),
    "scramble": (True,),
    "deterministic_objective": (False,),
}
"""Arguments that change nothing here, and the values that are accepted."""


@dataclass(frozen=True, slots=True)
class Sampler:
    """A searcher, the seed of its study, and the configs of a grid, which are tried in place of proposals."""

    searcher: Searcher
    seed: int
    grid: tuple[Mapping[str, Any], ...] = ()


def _sampler(name: str, searcher: Searcher, seed: int | None, arguments: Mapping[str, Any]) -> Sampler:
    for argument, value in arguments.items():
        if value not in _HERE_ANYWAY.get(argument, ()):
            raise OptionError(f"{name}({argument}={short_repr(value)}) is not supported here; leave it out")
    return Sampler(searcher, 0 if seed is None else seed)


def TPESampler(  # noqa: N802 - the names in Optuna
    *, seed: int | None = None, n_startup_trials: int = 10, n_ei_candidates: int = 24, **others: Any
) -> Sampler:
    """Return ``searcher="tpe"``."""
    return _sampler("TPESampler", TpeSearcher(n_startup_trials, n_ei_candidates), seed, others)


def RandomSampler(seed: int | None = None) -> Sampler:  # noqa: N802
    """Return ``searcher="random"``."""
    return _sampler("RandomSampler", RandomSearcher(), seed, {})


def CmaEsSampler(*, seed: int | None = None, popsize: int | None = None, **others: Any) -> Sampler:  # noqa: N802
    """Return ``searcher="cmaes"``."""
    return _sampler("CmaEsSampler", CmaesSearcher(population=popsize), seed, others)


def GPSampler(*, seed: int | None = None, n_startup_trials: int = 10, **others: Any) -> Sampler:  # noqa: N802
    """Return ``searcher="gp"``."""
    return _sampler("GPSampler", GpSearcher(n_startup_trials), seed, others)


def QMCSampler(*, qmc_type: str = "sobol", seed: int | None = None, **others: Any) -> Sampler:  # noqa: N802
    """Return ``searcher="quasi"``, whose points are scrambled."""
    return _sampler("QMCSampler", QuasiSearcher(qmc_type), seed, others)


def NSGAIISampler(*, seed: int | None = None, **others: Any) -> Sampler:  # noqa: N802
    """Return ``searcher="tpe"``, which ranks trials by fronts, with a warning: NSGA-II is not here."""
    _LOG.warning("NSGAIISampler: the searcher is tpe, which ranks trials by fronts; NSGA-II is not here")
    return _sampler("NSGAIISampler", TpeSearcher(), seed, others)


def GridSampler(search_space: Mapping[str, Sequence[Any]], seed: int | None = None) -> Sampler:  # noqa: N802
    """Return all combinations of the values as configs to try; the study is done after them."""
    grid = [
        dict(zip(search_space, values, strict=True)) for values in itertools.product(*search_space.values())
    ]
    if not grid or len(grid) > _MOST_OF_GRID:
        raise OptionError(f"GridSampler: {len(grid)} combinations; valid are 1 to {_MOST_OF_GRID}")
    return Sampler(RandomSearcher(), 0 if seed is None else seed, tuple(grid))


_MOST_OF_GRID: Final = 10_000
