"""The arrays of the live configs before the first event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.automl.options import AutomlOptions
from onlineauto.automl.oracles import ORACLES
from onlineauto.engine.ensemble.ensemble import begin_again, make_ensemble
from onlineauto.engine.records.search import (
    NEVER,
    Live,
    LiveStatistics,
    NamespaceCounts,
    Schedule,
    Tests,
)
from onlineauto.engine.records.task import Shape
from onlineauto.estimators.robust_kernels import Test
from onlineauto.estimators.scale_kernels import make_scale
from onlineauto.learners.loss_kernels import MTR
from onlineauto.state.schema import copy, make

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.automl.control import Control
    from onlineauto.engine.ensemble.member import Member
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.options import Configuration


def forget_evidence(live: Live, fresh: Live) -> None:
    """Reset the evidence, the mix and the ensemble to `fresh` arrays, but not counts, leases and levels."""
    copy(fresh, live, forgets=True)
    live.mix[: live.n] = 1.0 / live.n
    if live.ensemble.on:
        begin_again(live.ensemble, fresh.ensemble)


def _is_sparing(options: AutomlOptions, learner: Learner, control: Control, *, predicts_with: str) -> bool:
    """Return whether rewards are compared on some events only.

    That is possible if nothing else needs the scores of challengers, and losses decide as well, at every
    event.
    """
    task, settings = learner.task, learner.model.settings[0]
    return (
        predicts_with == "champion"
        and task.shape != Shape.SIMPLE
        and not task.exploration.policies
        and options.is_paired(control.paired)
        and options.tests_losses()
        and ORACLES[options.oracle_type or control.oracle].renews
        and settings["cb_type"] == MTR
        and "cb_type" not in options.searched()
    )


def make_live(
    configuration: Configuration,
    learner: Learner,
    control: Control,
    *,
    predicts_with: str,
    members: Sequence[Member],
) -> Live:
    """Return the arrays of a search, or of a single champion, before the first event.

    `predicts_with` is "champion", "mix" or "ensemble"; `members` are those of the ensemble.
    """
    options = configuration[AutomlOptions]
    max_live, simple, shape = options.automl or 1, learner.task.shape == Shape.SIMPLE, learner.shape
    alpha = float(np.float32(options.automl_significance_level))
    share = 1 if options.fixed_significance_level else max_live
    sizes = {"slots": max_live}
    return make(
        Live,
        sizes,
        n=1,
        slot_step=shape.config_step,
        part_step=shape.part_step,
        searching=options.automl is not None,
        reversed=options.debug_reversed_learn,
        mixing=simple and predicts_with != "champion",
        mix=np.eye(1, max_live)[0],
        schedule=make(Schedule, sizes, due=np.array([0, 0, NEVER, NEVER], np.int64)),
        tests=make(
            Tests,
            sizes,
            paired=options.is_paired(control.paired),
            by_reward=not simple and options.tests_rewards(),
            by_loss=options.tests_losses(),
            sparing=_is_sparing(options, learner, control, predicts_with=predicts_with),
            cost_is_reward=options.reward_as_cost,
            robust=Test(
                alpha=np.float64(np.float32(np.float32(alpha) / np.float32(share))),
                tol_x=np.float64(np.float32(options.tol_x)),
            ),
        ),
        statistics=make(LiveStatistics, sizes, scale=make_scale(*options.rewards(), floor=options.min_prob)),
        namespaces=make_counts(np.zeros(0, bool)),
        ensemble=make_ensemble(
            max_live,
            on=predicts_with == "ensemble",
            simple=simple,
            members=members,
            configuration=configuration,
            cells=learner.shape.cells,
        ),
    )


def make_counts(seen: NDArray[np.bool_]) -> NamespaceCounts:
    """Return counts of namespaces before the first event; `seen` marks namespaces that count as seen."""
    n = len(seen)
    return NamespaceCounts(np.zeros(n, np.int64), np.zeros(n, np.int64), seen, np.zeros(n, np.int64))
