"""Bytes of models and predictions, to compare bit for bit, and names of test cases."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.workspace.workspace import Workspace


def named(options: Mapping[str, Any]) -> str:
    """Return options as the name of a test case."""
    return " ".join(f"{name}={value}" for name, value in options.items()) or "default"


def saved_of(workspace: Workspace, **options: Any) -> bytes:
    """Return the model file of a workspace."""
    file = io.BytesIO()
    workspace.save(file, **options)
    return file.getvalue()


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
