"""Rule: the constants of the update, from the options that name its parts."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.options import FeatureOptions
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.learners._kernels import (
    CONTRACTION,
    MAX_LABEL,
    MIN_LABEL,
    NORM,
    SETTINGS,
    WEIGHT,
    A,
    Model,
    Rule,
    T,
    W,
)
from onlineauto.learners.cost_kernels import DM, DR, IPS, MTR
from onlineauto.learners.loss_kernels import (
    CLASSIC,
    EXPECTILE,
    HINGE,
    LOGISTIC,
    POISSON,
    QUANTILE,
    SQUARED,
)
from onlineauto.learners.options import CbOptions, LossOptions, UpdateOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.features.records import Records
    from onlineauto.options import Configuration

__all__ = [
    "CB_TYPES",
    "LOSSES",
    "default_settings",
    "initial_lanes",
    "initial_settings",
    "initial_state",
    "initial_t",
    "initial_weights",
    "make_model",
    "make_rule",
    "put_settings",
]

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
CB_TYPES = {"mtr": MTR, "ips": IPS, "dr": DR, "dm": DM}
"""Codes of what costs are learnt from."""

_WIDE = 50.0
"""Logistic and Poisson predictions live in [-50, 50] from the start."""


def initial_t(configuration: Configuration) -> np.float32:
    """Events that the step size takes for already seen: ``--initial_t``, or 1 if nothing adapts it."""
    update = configuration[UpdateOptions]
    if update.initial_t is not None:
        return np.float32(update.initial_t)
    named = update.sgd or update.adaptive or update.invariant or update.normalized
    return np.float32(1 if named and not update.adaptive and not update.normalized else 0)


_LINE = 16  # float32 numbers of a cache line
_LARGE = 1 << 24


def make_rule(configuration: Configuration, *, guarded: bool = False) -> Rule:
    """Constants of the update rule.

    Naming a part (``--adaptive``, ``--normalized``, ``--invariant``) or ``--sgd`` switches to what is named;
    the learning rate is then 10 by default unless the rule is both adaptive and normalized, as in VW. A
    `guarded` rule lets nothing that is not finite into the weights, whatever the input.
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


def initial_state(configuration: Configuration, *, training: bool) -> NDArray[np.float64]:
    """State shared by all lanes before the first event: float64[6], see `onlineauto.learners._kernels`."""
    update, loss = configuration[UpdateOptions], configuration[LossOptions]
    state = np.zeros(6)
    state[T] = initial_t(configuration)
    state[MIN_LABEL] = np.float32(update.min_prediction or 0)
    state[MAX_LABEL] = np.float32(update.max_prediction or 0)
    fixed = update.min_prediction is not None or update.max_prediction is not None
    if loss.loss_function in ("logistic", "poisson") and training and not fixed:
        state[MIN_LABEL], state[MAX_LABEL] = -_WIDE, _WIDE
    return state


def initial_lanes(configuration: Configuration, *, lanes: int) -> NDArray[np.float64]:
    """State of every lane before the first event: float64[lanes, 4], see `onlineauto.learners._kernels`."""
    state = np.zeros((lanes, 4))
    state[:, CONTRACTION] = 1.0
    state[0, [NORM, WEIGHT]] = np.float32(configuration[UpdateOptions].initial_t or 0)
    return state


def default_settings(configuration: Configuration) -> dict[str, float | str]:
    """Hyperparameters that can be searched, as the command line has them."""
    update = configuration[UpdateOptions]
    return {
        "learning_rate": float(make_rule(configuration).learning_rate),
        "power_t": update.power_t,
        "l1": update.l1,
        "l2": update.l2,
        "cb_type": configuration[CbOptions].cb_type,
    }


def put_settings(
    record: Records, settings: Mapping[str, float | str], *, defaults: Mapping[str, float | str]
) -> None:
    """Let a slot, whose record of `SETTINGS` this is, learn with these, and else with the defaults."""
    chosen = {**defaults, **settings}
    power_t, usual = np.float32(chosen["power_t"]), float(defaults["learning_rate"])
    record["rate"] = float(chosen["learning_rate"]) / usual if usual else 1.0
    record["minus_power_t"], record["norm_power"] = -power_t, np.float32(power_t - np.float32(1))
    record["l1"], record["l2"] = np.float32(chosen["l1"]), np.float32(chosen["l2"])
    record["cb_type"] = CB_TYPES[str(chosen["cb_type"])]
    record["square_root"] = power_t == np.float32(0.5)
    record["plain"] = record["square_root"] and record["l1"] == 0.0 and record["l2"] == 0.0


def initial_settings(configuration: Configuration, *, lanes: int) -> Records:
    """Records of `SETTINGS` of as many slots as there are lanes, all as the command line has them."""
    settings, defaults = np.zeros(lanes, SETTINGS), default_settings(configuration)
    for slot in range(lanes):
        put_settings(settings[slot], {}, defaults=defaults)
    return settings


def make_model(
    configuration: Configuration,
    weights: NDArray[np.float32],
    *,
    slots: int,
    exact: bool,
    training: bool,
    policies: int = 0,
    parts: int = 1,
) -> Model:
    """A model before the first event, of so many live slots.

    Every slot has penalties of its own, and so has every one of its policies, if it has several; but if
    `exact`, all lanes share those of the first, as in VW. A slot has so many `parts`, each a lane.
    """
    n_cells, _, lanes = weights.shape
    lane, together = np.arange(lanes), slots * max(parts // max(policies, 1), 1)
    touched = np.zeros(n_cells, bool)
    if constant := configuration[FeatureOptions].constant:
        cell, its_lane = int(CONSTANT_HASH) % n_cells, 0
        if exact:
            cell, its_lane = divmod(int(CONSTANT_HASH) % (n_cells * lanes), lanes)
        weights[cell, W, its_lane] = constant
        touched[cell] = True
    return Model(
        weights=weights,
        table=weights.reshape(n_cells, -1),
        touched=touched,
        shared=initial_state(configuration, training=training),
        lanes=initial_lanes(configuration, lanes=lanes),
        penalised=np.zeros(lanes, np.int64) if exact else lane // together * together + lane % slots,
        sums=np.zeros((slots, 2 * max(policies, 1)), np.int64),
        settings=initial_settings(configuration, lanes=lanes),
    )


def initial_weights(configuration: Configuration, *, cells: int, lanes: int) -> NDArray[np.float32]:
    """Weight table before the first event: float32[cells, 4, lanes]."""
    update = configuration[UpdateOptions]
    weights = _zeros(cells * 4 * lanes).reshape(cells, 4, lanes)
    if update.initial_weight:
        weights[:, W] = update.initial_weight
    if make_rule(configuration).adaptive and initial_t(configuration) > 0:
        weights[:, A] = initial_t(configuration)
    return weights


def _zeros(n: int) -> NDArray[np.float32]:
    """So many zeros, from the beginning of a cache line on, so that a cell of four lanes is one line.

    A large table is taken in small pages: most of its cells stay untouched, and take no memory then.
    """
    if n > _LARGE and hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory = mmap.mmap(-1, 4 * n)
        memory.madvise(mmap.MADV_NOHUGEPAGE)
        return np.frombuffer(memory, np.float32)
    column = np.zeros(n + _LINE, np.float32)
    begin = -(column.ctypes.data // column.itemsize) % _LINE
    return column[begin : begin + n]
