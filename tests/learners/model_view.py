"""The numbers of a learner beside its weights, by name."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from onlineauto import Workspace
from onlineauto.learners import gradient_kernels as fields


class Lanes(NamedTuple):
    """The numbers of each lane: views of columns of the model."""

    norm: NDArray[Any]
    weight: NDArray[Any]
    gravity: NDArray[Any]
    contraction: NDArray[Any]


class Shared(NamedTuple):
    """The numbers that all lanes share."""

    t: float
    unlabelled_weight: float
    holdout_weight: float
    min_label: float
    max_label: float


def lanes_of(workspace: Workspace) -> Lanes:
    """Return the numbers of each lane of a model."""
    columns = (fields.NORM, fields.WEIGHT, fields.GRAVITY, fields.CONTRACTION)
    return Lanes(*(workspace.learner.model.lanes[:, column] for column in columns))


def shared_of(workspace: Workspace) -> Shared:
    """Return the numbers that all lanes of a model share."""
    places = (
        fields.T,
        fields.UNLABELLED_WEIGHT,
        fields.HOLDOUT_WEIGHT,
        fields.MIN_LABEL,
        fields.MAX_LABEL,
    )
    return Shared(*workspace.learner.model.shared[list(places)].tolist())


def weights_of(workspace: Workspace) -> NDArray[Any]:
    """Return the weights: a row for each feature, a column for each lane."""
    return workspace.weights[:, fields.W]


def gradients_of(workspace: Workspace) -> NDArray[Any]:
    """Return the sums of squared gradients, in the layout of `weights_of`."""
    return workspace.weights[:, fields.A]
