"""Room for what the loop fills, and the outcomes made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.outcomes import Outcomes
from onlineauto.engine.state import ROW, Buffers, Results
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.records import RUN

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["make_buffers", "make_outcomes", "make_results"]


def make_buffers(*, features: int, actions: int, slots: int, runs: int = 64) -> Buffers:
    """Working columns: room for so many features, actions, live slots and runs of features."""
    return Buffers(
        cell=np.empty(features, np.uint32),
        value=np.empty(features, np.float32),
        runs=np.zeros(runs, RUN),
        score=np.zeros((slots + 3, actions), np.float32),
        target=np.zeros(actions, np.float32),
        squares=np.zeros(slots, np.float32),
        first_squares=np.full(actions, np.nan, np.float32),
        base=np.zeros((1, slots + 3), np.float32),
        front=np.zeros(runs, np.int64),
        back=np.zeros(runs, np.int64),
    )


def make_results(block: Block, n_actions: NDArray[np.int64]) -> Results:
    """Room for the results of a block."""
    rows = np.zeros(len(block), ROW)
    rows["known_action"] = -1
    rows["known_cost"] = UNLABELLED
    rows["action_start"][1:] = np.cumsum(n_actions)[:-1]
    total = int(n_actions.sum())
    return Results(rows=rows, action=np.zeros(total, np.int32), score=np.zeros(total, np.float32))


def make_outcomes(block: Block, holdout: NDArray[np.bool_], results: Results, *, simple: bool) -> Outcomes:
    """What the loop found out about a block, in columns."""
    line = block.event_start[:-1]
    n = len(block)
    columns = {str(name): np.ascontiguousarray(results.rows[name]) for name in results.rows.dtype.names}
    columns["action_start"] = np.append(columns["action_start"], len(results.action))
    return Outcomes(
        line=line,
        weight=block.weight[line] if simple else np.ones(n, np.float32),
        holdout=holdout,
        label=block.label[line] if simple else np.full(n, UNLABELLED),
        action=results.action,
        score=results.score,
        **columns,
    )
