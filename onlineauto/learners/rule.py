"""Rule: the constants of the update, from the options that name its parts."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.learners._kernels import (
    CONTRACTION,
    MAX_LABEL,
    MIN_LABEL,
    A,
    Rule,
    T,
    W,
)
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
    from numpy.typing import NDArray

    from onlineauto.options import Configuration

__all__ = ["LOSSES", "initial_state", "initial_t", "initial_weights", "make_rule"]

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
    """State shared by all lanes before the first event: float64[8], see `onlineauto.learners._kernels`."""
    update, loss = configuration[UpdateOptions], configuration[LossOptions]
    state = np.zeros(8)
    state[T] = initial_t(configuration)
    state[CONTRACTION] = 1.0
    state[MIN_LABEL] = np.float32(update.min_prediction or 0)
    state[MAX_LABEL] = np.float32(update.max_prediction or 0)
    fixed = update.min_prediction is not None or update.max_prediction is not None
    if loss.loss_function in ("logistic", "poisson") and training and not fixed:
        state[MIN_LABEL], state[MAX_LABEL] = -_WIDE, _WIDE
    return state


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
