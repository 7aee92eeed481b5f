"""The weight table of Vowpal Wabbit, in which all models share the cells."""

from __future__ import annotations

import numpy as np

from onlineauto.features.records import CONSTANT_HASH
from onlineauto.learners.table import TableShape


def lanes_interleaved(bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
    """Return the shape of VW's table for ``-b`` bits: 2^n lanes, which share the cells and penalties.

    Source: VW ``gd.cc`` (``--l1``, ``--l2``), ``learner.h`` (increments), ``cb_algs.cc`` (mask).
    """
    lanes = 1 << (configs * parts - 1).bit_length()
    cells = max(1, 2**bits // lanes)
    cell, lane = divmod(int(CONSTANT_HASH) % (cells * lanes), lanes)
    return TableShape(
        configs=configs,
        policies=policies,
        parts=parts,
        cells=cells,
        lanes=lanes,
        config_step=parts,
        part_step=1,
        penalised=np.zeros(lanes, np.int64),
        constant=(cell, lane),
        hash_mask=cells - 1,
    )
