"""Records of a search: the live configs, and the screening of interactions."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.estimators.robust_kernels import Test
    from onlineauto.features.records import Interactions


class Due(IntEnum):
    """Entries of `Schedule.due`."""

    FILL = 0  # 1 if a config waits, and fewer configs are live than allowed
    REPLACEABLE = 1  # 1 if a config waits to replace a challenger that is proved worse
    REVIEW = 2  # the loop stops once this number of events is learnt
    LOOK = 3  # the loop stops once `LiveStatistics.recent` has this number of losses


class Schedule(NamedTuple):
    """The leases of live configs, and the conditions under which the loop stops for the search."""

    due: NDArray[np.int64]  # [4]: see `Due`; an array, so that the loop's context need not be packed again
    lease: NDArray[np.int64]  # [slots]
    updates: NDArray[np.int64]  # [slots]: events learnt since the config became live


class Tests(NamedTuple):
    """The tests of challengers against the champion: which tests decide, and the evidence so far."""

    paired: bool  # paired tests decide, not bounds on the reward of each config
    by_reward: bool  # the reward test can change the champion
    by_loss: bool  # the loss test can change the champion, among configs that are `alike`
    sparing: bool  # rewards are compared, and challengers score all actions, on some events only
    cost_is_reward: bool
    robust: Test  # the constants of the bounds on each config's reward
    evidence: NDArray[np.float64]  # [slots, RewardOwner, LOWER | UPPER, SIZE]: evidence for bounds on rewards
    decided: NDArray[np.bool_]  # [slots]: not better, until it or the champion has a weight other than 0
    pairs: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's rewards against the champion's
    losses: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's losses against the champion's
    spread: NDArray[np.float64]  # [slots, SPREAD_SIZE]: spread of the differences of losses
    alike: NDArray[np.bool_]  # [slots]: the losses of config and champion can be compared
    prices: NDArray[np.float64]  # [slots]: minimum gain per event for a promotion, as a part of the range
    levels: NDArray[np.float64]  # [slots]: joint probability of error of both tests of a challenger
    compared: NDArray[np.int64]  # [slots]: number of `Schedule.updates` on which rewards were compared


class LiveStatistics(NamedTuple):
    """Sums over the events so far: rewards and losses of live configs, and statistics of the log."""

    policies: NDArray[np.float64]  # [slots, RewardOwner, POLICY_SIZE]: sums for intervals, if paired: of
    # the config; and of the champion, at the time when the config became live
    last: NDArray[np.float64]  # [slots, RewardOwner, 2]: latest importance weight and reward
    reach: NDArray[np.float64]  # [2]: largest loss; mean of recent losses
    recent: NDArray[np.float64]  # [groups]: sums of the champion's latest losses, over GROUP events each
    fresh: NDArray[np.int64]  # [1]: number of losses in `recent`
    scale: NDArray[np.float64]  # [SCALE_SIZE]: range of rewards, and smallest propensity
    logged: NDArray[np.float64]  # [PLACES + 1]: events learnt by position of the logged action; the total
    draws: NDArray[np.float64]  # [DRAWS_SIZE]: whether each event's logged action was drawn separately
    compared_draws: NDArray[np.float64]  # [DRAWS_SIZE]: the same for events on which rewards were compared


class NamespaceCounts(NamedTuple):
    """Counts of the features of namespaces so far, by the keys of the layout."""

    counts: NDArray[np.int64]  # [keys]: number of actions with features in each namespace
    sizes: NDArray[np.int64]  # [keys]: number of features on these actions
    seen: NDArray[np.bool_]  # [keys]: seen before, or never crossed
    marks: NDArray[np.int64]  # [keys]: mark of the last line that counted a namespace


class Live(NamedTuple):
    """The live configs. Number 0 is the champion, and the only one unless a search is running.

    An axis ``slots`` has one entry for each possible live config. The first `n` entries are in use.
    """

    n: int  # number of live configs now
    slot_step: int  # lanes between two live configs
    part_step: int  # lanes between two parts of a live config
    searching: bool
    reversed: bool  # challengers learn in descending order
    mixing: bool  # a single line's prediction is a weighted mean over all live configs
    mix: NDArray[np.float64]  # [slots]: weights of that mean; they sum to 1
    tally: NDArray[np.int64]  # [Tally]
    schedule: Schedule
    tests: Tests
    statistics: LiveStatistics
    namespaces: NamespaceCounts
    ensemble: Ensemble


class Tally(IntEnum):
    """Entries of `Live.tally`."""

    LEARNT = 0  # events learnt
    MARK = 1  # the last mark
    OUTSIDE = 2  # rewards outside [0, 1]
    EVENTS = 3  # events counted
    ACTIONS = 4  # actions counted


PLACES = 64
"""Number of positions of actions that are counted separately; the last one includes all later positions."""

GROUP = 32
"""Number of events whose mean loss is one observation of the drift detector."""


class RewardOwner(IntEnum):
    """Rows of an estimator: the config's own reward, and the champion's reward over the same events."""

    SELF = 0
    CHAMPION = 1


class Screen(NamedTuple):
    """The estimated gains of candidate interactions; see `onlineauto.engine.event.screen_kernels`."""

    many: int  # number of screened interactions, including namespaces not seen again since a resume
    interactions: Interactions  # those of namespaces seen so far
    inside: NDArray[np.bool_]  # [interactions]: the champion has the interaction
    gains: NDArray[np.float64]  # [interactions]
    ends: NDArray[np.int64]  # [interactions]: scratch: end of the listed features of each interaction
    seen: NDArray[np.int64]  # [1]: events since the last change of champion
    table: NDArray[np.float32]  # [cells, 3]: SUM, COUNT, LARGEST of each feature
