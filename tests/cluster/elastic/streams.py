"""Small streams for tests of the sharded learner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from datasets.generate import text
from onlineauto.learners.cells import read_cells

if TYPE_CHECKING:
    from onlineauto import Workspace
    from onlineauto.cluster.elastic import Snapshot

BANDIT = text("narrow", events=900, seed=3)
LINES = text("regression", events=1500, seed=2)
EXPLORING: dict[str, Any] = {"cb_explore_adf": True, "quadratic": ["::"], "bit_precision": 12}
FINE: dict[str, Any] = {"parts": 4, "part_events": 8, "warm_up": 64, "blocks": 8}
"""A cutting with many ticks."""


def bits_of(model: Workspace) -> bytes:
    """Return all that has been learnt, as bytes; the rates of the last updates are scratch."""
    learnt = model.learner.model
    return b"".join(
        np.ascontiguousarray(array).tobytes()
        for array in (read_cells(learnt, fields=3), learnt.shared, learnt.lanes, learnt.sums)
    )


def same(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots are of the same tick, bit for bit."""
    return one.tick == other.tick and bits_of(one.workspace()) == bits_of(other.workspace())
