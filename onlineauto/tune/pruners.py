"""Schedulers by the names and arguments of Optuna's pruners, for ``create_study(pruner=…)``.

>>> from onlineauto.tune import create_study
>>> from onlineauto.tune.pruners import MedianPruner, PatientPruner
>>> study = create_study(pruner=PatientPruner(MedianPruner(n_warmup_steps=3), patience=2))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.pruning import Pruning

if TYPE_CHECKING:
    from onlineauto.tune.schedulers import Scheduler


def NopPruner() -> FifoScheduler:  # noqa: N802 - the names in Optuna
    """Prune nothing."""
    return FifoScheduler()


def MedianPruner(  # noqa: N802
    n_startup_trials: int = 5, n_warmup_steps: int = 0, interval_steps: int = 1, *, n_min_trials: int = 1
) -> Pruning:
    """Prune a trial whose best value is worse than the median of the complete trials at the same step."""
    return PercentilePruner(50, n_startup_trials, n_warmup_steps, interval_steps, n_min_trials=n_min_trials)


def PercentilePruner(  # noqa: N802
    percentile: float,
    n_startup_trials: int = 5,
    n_warmup_steps: int = 0,
    interval_steps: int = 1,
    *,
    n_min_trials: int = 1,
) -> Pruning:
    """Prune a trial whose best value is not among this percentage of the complete trials at the same step."""
    return Pruning("percentile", **locals())


def ThresholdPruner(  # noqa: N802
    lower: float | None = None, upper: float | None = None, n_warmup_steps: int = 0, interval_steps: int = 1
) -> Pruning:
    """Prune a trial whose value is below `lower` or above `upper`."""
    if lower is None and upper is None:
        raise OptionError("ThresholdPruner: give lower=, upper= or both")
    return Pruning("threshold", **locals())


def PatientPruner(  # noqa: N802
    wrapped_pruner: Scheduler | None, patience: int, min_delta: float = 0.0
) -> Pruning:
    """Let a pruner prune only a trial that has not improved by `min_delta` within `patience` steps.

    None in place of a pruner prunes each such trial.
    """
    if wrapped_pruner is None:
        return Pruning("patience", patience=patience, min_delta=min_delta)
    if not isinstance(wrapped_pruner, Pruning) or wrapped_pruner.options["patience"] is not None:
        raise OptionError(
            f"PatientPruner({short_repr(wrapped_pruner)}): give a pruner without patience, or None"
        )
    return Pruning(**{**wrapped_pruner.options, "patience": patience, "min_delta": min_delta})


def SuccessiveHalvingPruner(  # noqa: N802
    min_resource: str | int = "auto",
    reduction_factor: int = 4,
    min_early_stopping_rate: int = 0,
    bootstrap_count: int = 0,
) -> Pruning:
    """Prune a trial that is not among the best ``1/reduction_factor`` of those that have reached a rung.

    ``auto`` is a hundredth of the steps of the longest complete trial; before the first one, none is pruned.
    """
    return Pruning("halving", **locals())


def HyperbandPruner(  # noqa: N802
    min_resource: int = 1,
    max_resource: str | int = "auto",
    reduction_factor: int = 3,
    bootstrap_count: int = 0,
) -> Pruning:
    """Divide trials among brackets, each of which prunes like `SuccessiveHalvingPruner`, the next ones later.

    ``auto`` is the number of steps of the longest complete trial. No trial is resumed, unlike with
    ``scheduler="hyperband"``.
    """
    return Pruning("hyperband", **locals())
