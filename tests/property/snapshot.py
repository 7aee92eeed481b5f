"""Everything that learning changes, to compare bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.workspace.workspace import Workspace


def model_of(workspace: Workspace) -> list[bytes]:
    """Bytes of the weights and of all other state of a model."""
    model, exploration = workspace.learner.model, workspace.learner.task.exploration
    columns = (workspace.weights, model.shared, model.lanes, model.sums)
    explored = (exploration.counts, exploration.costs, exploration.random)
    return [column.tobytes() for column in (*columns, *explored)]


def predictions_of(outcomes: Sequence[Outcomes]) -> list[bytes]:
    """Bytes of everything that was predicted and lost."""
    names = ("loss", "prediction", "raw", "action", "score", "n_features", "shown_features", "known_cost")
    return [np.concatenate([getattr(each, name) for each in outcomes]).tobytes() for name in names]
