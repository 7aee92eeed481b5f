"""A waiting config keeps the cells that it has learnt, and no others."""

from __future__ import annotations

import numpy as np

from onlineauto import Workspace
from onlineauto.engine.search.waiting_configs import learnt_cells
from onlineauto.learners.model import write_cells
from tests.naive.native_search.streams import choices


def test_cells_that_only_others_have_learnt_are_left_out() -> None:
    workspace = Workspace(cb_explore_adf=True, automl=2, bit_precision=10, default_lease=60).fit(choices(300))
    model = workspace.learner.model
    unlearnt = workspace.learner.unlearnt
    touched = np.flatnonzero(model.touched)
    write_cells(model, touched[3:], unlearnt[None, :, None], lanes=[1])
    write_cells(model, touched[:3], np.full((3, 4, 1), 2.0, np.float32), lanes=[1])
    cells, weights = learnt_cells(model, [1], unlearnt)
    assert cells.tolist() == touched[:3].tolist()
    assert weights.shape == (3, 4, 1)
    assert (weights == 2.0).all()
    both, _ = learnt_cells(model, [0, 1], unlearnt)
    assert set(cells) < set(both)
