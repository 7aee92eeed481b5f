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


class Schedule(NamedTuple):
    """The leases of live configs, and when the loop stops for the search."""

    fill: bool  # a config waits, and there are fewer live configs than there can be
    replaceable: bool  # a config waits to replace a challenger that is proved worse
    review: int  # the loop stops when so many events are learnt
    look: int  # the loop stops when `LiveStatistics.recent` has so many losses
    lease: NDArray[np.int64]  # [slots]
    updates: NDArray[np.int64]  # [slots]: events learnt since the config is live


class Tests(NamedTuple):
    """The tests of challengers against the champion: what decides, and the evidence so far."""

    paired: bool  # paired tests decide, not bounds on the reward of each
    by_reward: bool  # the reward test can change the champion
    by_loss: bool  # the loss test can change the champion, for configs that are `alike`
    sparing: bool  # rewards are compared on some events only; challengers score all actions only on these
    cost_is_reward: bool
    robust: Test  # the constants of bounds on the reward of each
    evidence: NDArray[np.float64]  # [slots, Whose, LOWER | UPPER, SIZE]: for these bounds
    decided: NDArray[np.bool_]  # [slots]: not better, until it or the champion has a weight other than 0
    pairs: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's rewards against the champion's
    losses: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's losses against the champion's
    spread: NDArray[np.float64]  # [slots, SPREAD_SIZE]: spread of the differences of losses
    alike: NDArray[np.bool_]  # [slots]: the losses of config and champion can be compared
    prices: NDArray[np.float64]  # [slots]: gain for each event that is not enough, as a part of the range
    levels: NDArray[np.float64]  # [slots]: probability of error of both tests of a challenger together
    compared: NDArray[np.int64]  # [slots]: of `Schedule.updates`, events on which its rewards were compared


class LiveStatistics(NamedTuple):
    """Sums over the events so far: of the rewards and losses of live configs, and of the log."""

    policies: NDArray[np.float64]  # [slots, Whose, POLICY_SIZE]: sums for intervals, if paired: of
    # the config; and of the champion, at the time when the config became live
    last: NDArray[np.float64]  # [slots, Whose, 2]: latest importance weight and reward
    reach: NDArray[np.float64]  # [2]: largest loss; mean of recent losses
    recent: NDArray[np.float64]  # [groups]: sums of the champion's latest losses, of GROUP events each
    fresh: NDArray[np.int64]  # [1]: number of losses in `recent`
    scale: NDArray[np.float64]  # [SCALE_SIZE]: range of rewards, and smallest propensity
    logged: NDArray[np.float64]  # [PLACES + 1]: events learnt with each logged action, by its place; in all
    draws: NDArray[np.float64]  # [DRAWS_SIZE]: whether the logged actions were drawn anew for each event
    compared_draws: NDArray[np.float64]  # [DRAWS_SIZE]: the same of those on which rewards were compared


class NamespaceCounts(NamedTuple):
    """The features that namespaces had so far, by the keys of the layout."""

    counts: NDArray[np.int64]  # [keys]: number of actions with features in each namespace
    sizes: NDArray[np.int64]  # [keys]: number of these features
    seen: NDArray[np.bool_]  # [keys]: seen before, or never crossed
    marks: NDArray[np.int64]  # [keys]: the line that counted a namespace last, as a mark


class Live(NamedTuple):
    """The live configs. Number 0 is the champion, and the only one unless there is a search.

    An axis ``slots`` has one entry for each live config that there can be, the first `n` of which are in use.
    """

    n: int  # live configs now
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
"""Number of places of actions that are told apart; the last one stands for all behind it."""

GROUP = 32
"""Number of events whose mean loss is one observation of the drift detector."""


class Whose(IntEnum):
    """Rows of an estimator: the reward of the config itself; that of the champion over the same events."""

    SELF = 0
    CHAMPION = 1


class Screen(NamedTuple):
    """The estimated gains of many interactions; see `onlineauto.engine.event.screen_kernels`."""

    many: int  # how many are screened, also of namespaces that a run which goes on has not met again yet
    interactions: Interactions  # those of namespaces that it has met
    inside: NDArray[np.bool_]  # [interactions]: the champion has the interaction
    gains: NDArray[np.float64]  # [interactions]
    ends: NDArray[np.int64]  # [interactions]: scratch: where the listed features of each end
    seen: NDArray[np.int64]  # [1]: events since the last change of champion
    table: NDArray[np.float32]  # [cells, 3]: SUM, COUNT, LARGEST of each feature
