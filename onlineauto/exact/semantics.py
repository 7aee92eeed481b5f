"""The semantics of exact mode: the flags and functions that make it differ from native mode."""

from __future__ import annotations

from onlineauto.engine.loop.semantics import Semantics
from onlineauto.exact.loop_kernels import run_events_as_vw
from onlineauto.exact.quirks import EVENT, EXPLORING
from onlineauto.exact.table import lanes_interleaved

EXACT = Semantics(
    place="onlineauto.exact.semantics:EXACT",
    flags={"vw_exact": True},
    quirks=EVENT,
    run_events=run_events_as_vw,
    table=lanes_interleaved,
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
