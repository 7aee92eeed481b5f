"""Records of a search: an axis ``slots`` has one entry for each possible live config."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from onlineauto.automl.search import REVIEW
from onlineauto.estimators.difference_kernels import SPREAD_SIZE
from onlineauto.estimators.draw_kernels import DRAWS_SIZE
from onlineauto.estimators.interval_kernels import POLICY_SIZE
from onlineauto.estimators.merge import (
    merge_difference_tests,
    merge_draws,
    merge_scales,
    merge_sums,
    merge_tests,
)
from onlineauto.estimators.paired_kernels import SIZE as PAIR_SIZE
from onlineauto.estimators.robust_kernels import SIZE, stored_evidence
from onlineauto.estimators.scale_kernels import SCALE_SIZE
from onlineauto.state.schema import (
    Sparse,
    add,
    between,
    by_entry,
    counts,
    declare,
    field,
    jointly,
    keep,
    largest,
    latest,
    nested,
    record,
    untouched,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.estimators.drift_kernels import DriftState
    from onlineauto.estimators.robust_kernels import Test
    from onlineauto.features.records import Interactions

    State = NDArray[np.float64]


PLACES = 64
"""Number of positions of actions that are counted separately; the last one includes all later positions."""

GROUP = 32
"""Number of events whose mean loss is one observation of the drift detector."""

NEVER = 2**62
"""A number of events that is never reached."""

_RECENT = 256.0
"""Number of the recent losses whose mean `LiveStatistics.reach` has."""


class Round(Protocol):
    """The context in which the records of a search merge."""

    floor: bool  # the tests know or learn the smallest propensity

    def mean(self, base: Any, ends: Sequence[Any], memory: float) -> NDArray[np.float64]:
        """Return the mean of the latest `memory` events, from those of the base and of branches."""


class Tally(IntEnum):
    """Entries of `Live.tally`."""

    LEARNT = 0  # events learnt
    MARK = 1  # the last mark
    OUTSIDE = 2  # rewards outside [0, 1]
    EVENTS = 3  # events counted
    ACTIONS = 4  # actions counted


class RewardOwner(IntEnum):
    """Rows of an estimator: the config's own reward, and the champion's reward over the same events."""

    SELF = 0
    CHAMPION = 1


class Due(IntEnum):
    """Entries of `Schedule.due`."""

    FILL = 0  # 1 if a config waits, and fewer configs are live than allowed
    REPLACEABLE = 1  # 1 if a config waits to replace a challenger that is proved worse
    REVIEW = 2  # the loop stops once this number of events is learnt
    LOOK = 3  # the loop looks for drift once `LiveStatistics.recent` has this number of losses
    STOP = 4  # the loop stops once it has this number


@record
class Schedule(NamedTuple):
    """The leases of live configs, and the conditions under which the loop stops for the search."""

    # An array, so that the loop's context need not be packed again
    due: NDArray[np.int64] = field(len(Due), saved=False)
    lease: NDArray[np.int64] = field("slots", saved=False, initial=NEVER)
    # Events learnt since the config became live
    updates: NDArray[np.int64] = field("slots", read=counts(), merge=add, waits=True)


def _merge_pairs(base: State, ends: Sequence[State], context: Round) -> State:
    rows = zip(base, *ends, strict=True)
    return np.array([merge_tests(first, others, floor=context.floor) for first, *others in rows])


def _merge_losses(base: Tests, ends: Sequence[Tests], context: Round) -> dict[str, State]:
    del context
    states = [zip(tests.losses, tests.spread, strict=True) for tests in (base, *ends)]
    merged = [merge_difference_tests(first, others) for first, *others in zip(*states, strict=True)]
    losses, spread = zip(*merged, strict=True)
    return {"losses": np.array(losses), "spread": np.array(spread)}


@record
class Tests(NamedTuple):
    """The tests of challengers against the champion: which tests decide, and the evidence so far."""

    paired: bool  # paired tests decide, not bounds on the reward of each config
    by_reward: bool  # the reward test can change the champion
    by_loss: bool  # the loss test can change the champion, among configs that are `alike`
    sparing: bool  # rewards are compared, and challengers score all actions, on some events only
    cost_is_reward: bool
    robust: Test  # the constants of the bounds on each config's reward
    # Evidence for bounds on rewards, by `RewardOwner`: the lower and the upper one
    evidence: NDArray[np.float64] = field(
        "slots", len(RewardOwner), 2, SIZE, read=stored_evidence, forgets=True, waits=True
    )
    # Not better, until it or the champion has a weight other than 0
    decided: NDArray[np.bool_] = field("slots", saved=False, forgets=True)
    # Tests of a challenger's rewards against the champion's
    pairs: NDArray[np.float64] = field("slots", PAIR_SIZE, merge=_merge_pairs, forgets=True, waits=True)
    # Tests of a challenger's losses against the champion's
    losses: NDArray[np.float64] = field("slots", PAIR_SIZE, merge=jointly, forgets=True, waits=True)
    # Spread of the differences of losses
    spread: NDArray[np.float64] = field("slots", SPREAD_SIZE, merge=jointly, forgets=True, waits=True)
    # The losses of config and champion can be compared
    alike: NDArray[np.bool_] = field("slots", merge=keep, initial=True)
    # Minimum gain per event for a promotion, as a part of the range
    prices: NDArray[np.float64] = field("slots", merge=keep)
    # Joint probability of error of both tests of a challenger
    levels: NDArray[np.float64] = field("slots", read=between(0.0, 2.0), merge=keep, waits=True)
    # Number of `Schedule.updates` on which rewards were compared
    compared: NDArray[np.int64] = field("slots", read=counts(), merge=add, waits=True)


declare(Tests, merge=_merge_losses)


def _merge_policies(base: State, ends: Sequence[State], context: Round) -> State:
    """Return the sums of each config; the champion's, from when it became live, do not change."""
    del context
    result = base.copy()
    for live, policies in enumerate(result):
        policies[RewardOwner.SELF] = merge_sums(
            base[live, RewardOwner.SELF], [end[live, RewardOwner.SELF] for end in ends]
        )
    return result


def _mean_of_recent(base: State, ends: Sequence[State], context: Round) -> State:
    return context.mean(base, ends, _RECENT)


@record
class LiveStatistics(NamedTuple):
    """Sums over the events so far: rewards and losses of live configs, and statistics of the log."""

    # Sums for intervals, if paired, by `RewardOwner`; the champion's, when the config became live
    policies: NDArray[np.float64] = field(
        "slots", len(RewardOwner), POLICY_SIZE, merge=_merge_policies, forgets=True, waits=True
    )
    # Latest importance weight and reward, by `RewardOwner`
    last: NDArray[np.float64] = field("slots", 2, 2, merge=latest, forgets=True, waits=True)
    # Largest loss; mean of recent losses
    reach: NDArray[np.float64] = field(2, merge=by_entry(largest, {1: _mean_of_recent}), forgets=True)
    # Sums of the champion's latest losses, over GROUP events each
    recent: NDArray[np.float64] = field(REVIEW // GROUP + 2, forgets=True)
    # Number of losses in `recent`
    fresh: NDArray[np.int64] = field(1, read=counts(REVIEW + 2 * GROUP), forgets=True)
    # Range of rewards, and smallest propensity
    scale: NDArray[np.float64] = field(SCALE_SIZE, merge=merge_scales, forgets=True)
    # Events learnt by position of the logged action; the total
    logged: NDArray[np.float64] = field(PLACES + 1, merge=add, forgets=True)
    # Whether each event's logged action was drawn separately
    draws: NDArray[np.float64] = field(DRAWS_SIZE, merge=merge_draws, forgets=True)
    # The same for events on which rewards were compared
    compared_draws: NDArray[np.float64] = field(DRAWS_SIZE, merge=merge_draws, forgets=True)


class NamespaceCounts(NamedTuple):
    """Counts of the features of namespaces so far, by the keys of the layout."""

    counts: NDArray[np.int64]  # [keys]: number of actions with features in each namespace
    sizes: NDArray[np.int64]  # [keys]: number of features on these actions
    seen: NDArray[np.bool_]  # [keys]: seen before, or never crossed
    marks: NDArray[np.int64]  # [keys]: mark of the last line that counted a namespace


def _merge_mix(base: State, ends: Sequence[State], context: Round) -> State:
    """Return weights that have grown by the product of their growths in the branches."""
    del context
    used = base > 0.0
    growths = [np.where(used, end / np.where(used, base, 1.0), 1.0) for end in ends]
    mix: State = base * np.prod(growths, axis=0)
    return mix / max(float(mix.sum()), 1e-300)


@record
class Live(NamedTuple):
    """The live configs, the first `n` entries of each axis ``slots``; number 0 is the champion."""

    n: int  # number of live configs now
    slot_step: int  # lanes between two live configs
    part_step: int  # lanes between two parts of a live config
    searching: bool
    reversed: bool  # challengers learn in descending order
    mixing: bool  # a single line's prediction is a weighted mean over all live configs
    # Weights of that mean; they sum to 1
    mix: NDArray[np.float64] = field("slots", read=between(0.0, 2.0), merge=_merge_mix, predicts=True)
    # The mark is of the base's lines
    tally: NDArray[np.int64] = field(len(Tally), saved=False, merge=by_entry(add, {Tally.MARK: keep}))
    schedule: Schedule = nested(Schedule)
    tests: Tests = nested(Tests)
    statistics: LiveStatistics = nested(LiveStatistics)
    drift: DriftState = untouched()  # stored by `onlineauto.engine.search.drift`
    namespaces: NamespaceCounts = untouched()
    ensemble: Ensemble = untouched()


@record
class Screen(NamedTuple):
    """The estimated gains of candidate interactions; see `onlineauto.engine.event.example_kernels`."""

    many: int  # number of screened interactions, including namespaces not seen again since a resume
    interactions: Interactions  # those of namespaces seen so far
    inside: NDArray[np.bool_]  # [interactions]: the champion has the interaction
    gains: NDArray[np.float64]  # [interactions]
    ends: NDArray[np.int64]  # [interactions]: scratch: end of the listed features of each interaction
    # Events since the last change of champion
    seen: NDArray[np.int64] = field(1, read=counts(), merge=add)
    # SUM, COUNT, LARGEST of each feature; of no cell until something is screened
    table: NDArray[np.float32] = field(Sparse("cells"), 3)
