"""Outcomes from lists of numbers, for tests of tables and reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.engine.records.loop import ROW
from onlineauto.features.block import UNLABELLED

__all__ = ["bandit", "part", "simple"]


def simple(
    *,
    loss: Sequence[float],
    label: Sequence[float | None],
    prediction: Sequence[float] | None = None,
    weight: Sequence[float] | None = None,
    holdout: Sequence[int] = (),
    features: Sequence[int] | None = None,
) -> Outcomes:
    """Make outcomes of single-line learning; `holdout` are the events held out."""
    n = len(loss)
    labels = np.array([UNLABELLED if value is None else value for value in label], np.float32)
    predictions = np.zeros(n, np.float32) if prediction is None else np.array(prediction, np.float32)
    return _outcomes(
        n,
        loss=np.array(loss, np.float32),
        weight=np.ones(n, np.float32) if weight is None else np.array(weight, np.float32),
        labelled=labels != UNLABELLED,
        holdout=np.isin(np.arange(n), holdout),
        n_features=np.ones(n, np.int64) if features is None else np.array(features, np.int64),
        label=labels,
        prediction=predictions,
        raw=predictions * np.float32(2),
    )


def bandit(
    *,
    loss: Sequence[float],
    known: Sequence[tuple[int, float, float] | None],
    scores: Sequence[Sequence[tuple[int, float]]],
    holdout: Sequence[int] = (),
    shown_features: Sequence[int] | None = None,
) -> Outcomes:
    """Make outcomes of a bandit: logged (action, cost, probability), and (action, score) of each event."""
    n = len(loss)
    logged = [(-1, float(UNLABELLED), 0.0) if each is None else each for each in known]
    return _outcomes(
        n,
        loss=np.array(loss, np.float32),
        labelled=np.array([each is not None for each in known], bool),
        holdout=np.isin(np.arange(n), holdout),
        shown_features=np.ones(n, np.int64) if shown_features is None else np.array(shown_features, np.int64),
        known_action=np.array([action for action, _, _ in logged], np.int64),
        known_cost=np.array([cost for _, cost, _ in logged], np.float32),
        known_probability=np.array([probability for _, _, probability in logged], np.float32),
        action_start=np.concatenate([[0], np.cumsum([len(event) for event in scores], dtype=np.int64)]),
        action=np.array([action for event in scores for action, _ in event], np.int32),
        score=np.array([score for event in scores for _, score in event], np.float32),
    )


def part(outcomes: Outcomes, start: int, stop: int) -> Outcomes:
    """Cut out some consecutive events of single-line learning."""
    cut = {
        name: getattr(outcomes, name)[start:stop] for name in ("rows", "line", "weight", "holdout", "label")
    }
    return replace(outcomes, **cut)


def _outcomes(n: int, **columns: np.ndarray[tuple[int], np.dtype[np.generic]]) -> Outcomes:
    floats = ("loss", "label", "prediction", "raw", "known_cost", "known_probability")
    given = {name: np.zeros(n, np.float32) for name in floats}
    given |= {name: np.ones(n, np.int64) for name in ("n_features", "shown_features")}
    defaults = given | {
        "line": np.arange(n),
        "weight": np.ones(n, np.float32),
        "known_action": np.full(n, -1, np.int64),
        "action_start": np.zeros(n + 1, np.int64),
        "action": np.zeros(0, np.int32),
        "score": np.zeros(0, np.float32),
    }
    if "n_features" in columns and "shown_features" not in columns:
        columns["shown_features"] = columns["n_features"]
    if "shown_features" in columns and "n_features" not in columns:
        columns["n_features"] = columns["shown_features"]
    every: dict[str, Any] = defaults | columns
    rows = np.zeros(n, ROW)
    for name in ROW.names or ():
        if name in every:
            rows[name] = every[name][:n]
    rows["n_actions"] = np.diff(every["action_start"])
    kept = {name: every[name] for name in ("line", "weight", "holdout", "label", "action", "score")}
    return Outcomes(rows=rows, **kept)
