"""The semantics of exact mode: the flags and functions that make it differ from native mode."""

from __future__ import annotations

import numpy as np

from onlineauto.engine.loop.semantics import Semantics
from onlineauto.exact.loop_kernels import run_events_as_vw
from onlineauto.exact.options import EVENT, EXPLORING
from onlineauto.features.records import CONSTANT_HASH
from onlineauto.learners.model import TableShape


def interleaved_lanes(bits: int, *, configs: int, parts: int, policies: int) -> TableShape:
    """Return the shape of VW's table for ``-b`` bits: 2^n lanes, which share cells and penalties.

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


EXACT = Semantics(
    variable="onlineauto.exact.semantics:EXACT",
    flags={"vw_exact": True},
    quirks=EVENT,
    run_events=run_events_as_vw,
    table=interleaved_lanes,
    guarded=False,
    exploring=EXPLORING,
    fills_in_probabilities=False,
    bounds_by_rates=False,
    penalises_on_load=True,
    notices_predicted=True,
    leaves_out_widest=False,
    holds_out_by_line=True,
    search_draws_with_explorer=True,
    replaced_options=("oracle_type",),
    reports_as_vw=True,
    predicts_as_vw=True,
    spins_off_weights=True,
    merges_as_vw=True,
)
"""The semantics of Vowpal Wabbit 9.11.9."""
