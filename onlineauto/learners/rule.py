"""Make the constants of the update rule from the options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.learners.gradient_kernels import SETTINGS, Rule
from onlineauto.learners.loss_kernels import (
    CLASSIC,
    EXPECTILE,
    HINGE,
    LOGISTIC,
    POISSON,
    QUANTILE,
    SQUARED,
)
from onlineauto.learners.options import LossOptions, UpdateOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.features.records import Records
    from onlineauto.options import Configuration, Tunable

LOSSES = {
    "squared": SQUARED,
    "classic": CLASSIC,
    "hinge": HINGE,
    "logistic": LOGISTIC,
    "quantile": QUANTILE,
    "expectile": EXPECTILE,
    "poisson": POISSON,
}
"""Codes of the losses."""


def initial_t(configuration: Configuration) -> np.float32:
    """Return ``--initial_t``, by default 0 or 1: the number of events that the step size counts as seen."""
    update = configuration[UpdateOptions]
    if update.initial_t is not None:
        return np.float32(update.initial_t)
    named = update.sgd or update.adaptive or update.invariant or update.normalized
    return np.float32(1 if named and not update.adaptive and not update.normalized else 0)


def make_rule(configuration: Configuration, *, guarded: bool = False) -> Rule:
    """Return the constants of the update rule; a `guarded` rule keeps the weights finite for any input.

    If ``--adaptive``, ``--normalized``, ``--invariant`` or ``--sgd`` is supplied, the rule has only the
    supplied parts, and the learning rate is by default 10 unless both adaptive and normalized, as in VW.
    """
    update, loss = configuration[UpdateOptions], configuration[LossOptions]
    named = update.sgd or update.adaptive or update.invariant or update.normalized
    adaptive, normalized = not named or update.adaptive, not named or update.normalized
    rate = np.float32(update.learning_rate)
    if named and not (adaptive and normalized) and "learning_rate" not in configuration.supplied:
        rate = np.float32(10)
    power_t = np.float32(update.power_t)
    if not (adaptive or normalized):
        rate = np.float32(rate * initial_t(configuration) ** power_t)
    low, high = np.float32(loss.logistic_min), np.float32(loss.logistic_max)
    if loss.loss_function == "quantile":
        low = np.float32(loss.quantile_tau)
    elif loss.loss_function == "expectile" and loss.expectile_q is not None:
        low = np.float32(loss.expectile_q)
    return Rule(
        learning_rate=rate,
        minus_power_t=-power_t,
        norm_power=np.float32(power_t - np.float32(1)),
        square_root=bool(power_t == np.float32(0.5)),
        adaptive=adaptive,
        normalized=normalized,
        invariant=not named or update.invariant,
        l1=np.float64(np.float32(update.l1)),
        l2=np.float64(np.float32(update.l2)),
        loss=LOSSES[loss.loss_function],
        low=low,
        high=high,
        track_labels=update.min_prediction is None and update.max_prediction is None,
        guarded=guarded,
    )


class Hyperparameters:
    """All options of a configuration that can be searched (declared with ``tunable=``)."""

    def __init__(self, configuration: Configuration) -> None:
        options = configuration.tunable()
        self.tunable: dict[str, Tunable] = {name: tunable for name, (tunable, _) in options.items()}
        self.defaults = {name: value for name, (_, value) in options.items()}
        self.defaults["learning_rate"] = float(make_rule(configuration).learning_rate)

    def write(self, record: Records, settings: Mapping[str, float | str]) -> None:
        """Write the values of `settings` into a record of `SETTINGS`, and the defaults of all others."""
        for name, tunable in self.tunable.items():
            tunable.write(record, settings.get(name, self.defaults[name]), self.defaults[name])
        record["plain"] = record["square_root"] and record["l1"] == 0.0 and record["l2"] == 0.0

    def records(self, n: int) -> Records:
        """Return `n` records of the defaults: SETTINGS[n]."""
        records = np.zeros(n, SETTINGS)
        for i in range(n):
            self.write(records[i], {})
        return records
