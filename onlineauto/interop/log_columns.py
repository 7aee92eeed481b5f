"""Logged columns: costs, propensities and weights, checked for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED
from onlineauto.formats.mappings.named_event import invalid_probability

if TYPE_CHECKING:
    from numpy.typing import NDArray


def float32_column(values: NDArray[np.generic], noun: str) -> NDArray[np.float32]:
    """Return numbers as float32."""
    with np.errstate(over="ignore"):
        column = values.astype(np.float32)
    bad = np.flatnonzero(~np.isfinite(column))
    if len(bad):
        row = int(bad[0])
        raise InputError(f"row {row}: {noun} {values[row]} is infinite, NaN or too large")
    return column


def label_column(values: NDArray[np.generic], noun: str) -> NDArray[np.float32]:
    """Return labels as float32; a row with the label NaN has no label."""
    missing = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), bool)
    labels = float32_column(np.where(missing, 0, values), noun)
    labels[missing] = UNLABELLED
    return labels


def check_logs(
    rows: NDArray[np.int64],
    cost: NDArray[np.generic],
    probability: NDArray[np.generic],
    *,
    rewards: bool = False,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the costs and propensities of `rows` as float32; with `rewards`, `cost` has rewards."""
    with np.errstate(all="ignore"):
        costs, probabilities = cost.astype(np.float32), probability.astype(np.float32)
    if not np.isfinite(costs).all():
        i = int(np.argmin(np.isfinite(costs)))
        noun = "reward" if rewards else "cost"
        raise InputError(f"row {rows[i]}: {noun} {cost[i]} is infinite, NaN or too large for a float32")
    valid = (probabilities > 0) & (probabilities <= 1)
    if not valid.all():
        i = int(np.argmin(valid))
        raise InputError(f"row {rows[i]}: {invalid_probability(probability[i])}")
    return -costs if rewards else costs, probabilities


def check_weights(values: NDArray[np.generic]) -> NDArray[np.float32]:
    """Return importance weights as float32."""
    weights = float32_column(values, "weight")
    if (weights < 0).any():
        raise InputError(f"row {int(np.argmax(weights < 0))}: weight is negative")
    return weights
