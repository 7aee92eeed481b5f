"""Records of the ensemble: what it has learnt, and the inputs of its members."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Numbers(NamedTuple):
    """The numbers among the inputs of members, with their bins; see the ensemble's `number_bin_kernels`."""

    of_number: NDArray[np.int64]  # [numbers]: the input of each number
    named: NDArray[np.bool_]  # [numbers]: whether the number is part of a feature's name, not its value
    mean: NDArray[np.float64]  # [numbers]
    variance: NDArray[np.float64]  # [numbers]
    latest: NDArray[np.float64]  # [numbers, RING]: the latest values of each number, in a ring buffer
    bins: NDArray[np.int64]  # [numbers]: number of bins of each number
    cut: NDArray[np.float64]  # [numbers, BINS]: upper ends of the bins, in ascending order
    of_bin: NDArray[np.int64]  # [numbers, BINS]: the input of each bin; the constant's for a bin without one
    part: NDArray[np.int64]  # [numbers, BINS]: the permanent name of each bin
    group: NDArray[np.int64]  # [numbers, BINS]: the group of each bin
    sorted: NDArray[np.float64]  # [RING]: scratch


class Inputs(NamedTuple):
    """Inputs that members share: the known features of contexts, and the known actions.

    The first input is the constant.
    """

    tally: NDArray[np.int64]  # [Known]: number of known features, ...; limit + 1 means too many
    feature: NDArray[np.uint64]  # [table]: hash of a known feature + 1, or 0
    input: NDArray[np.int64]  # [table]: input of that feature
    number: NDArray[np.int64]  # [inputs]: index of the input among the numbers, or an `InputKind`
    names: NDArray[np.int64]  # [inputs]: index of the number that a word's name belongs to, or -1
    amount: NDArray[np.float64]  # [inputs]: the number in that name
    divided: NDArray[np.int64]  # [inputs]: the input of the bin that this bin was split from, or 0
    wide: NDArray[np.int64]  # [WIDE]: number of learnt events that exceeded each limit
    seen: NDArray[np.int64]  # [actions + 1]: number of events learnt with each action; the total
    action: NDArray[np.uint64]  # [actions]: key of each known action
    numbers: Numbers


class Taken(NamedTuple):
    """The inputs of an event, as members read them: scratch memory of a caller of the loop."""

    values: NDArray[np.float32]  # [inputs]: standardised numbers; 1 for the bin that contains a number
    raw: NDArray[np.float64]  # [numbers]: the values before standardisation
    words: NDArray[np.uint32]  # [inputs]: hashes of the features that are not numbers
    n_words: NDArray[np.int64]  # [1]


class Members(NamedTuple):
    """The members that are not live configs, and the inputs that they share. There may be none."""

    inputs: Inputs
    rests: NDArray[np.bool_]  # [scores]: True if a score rests: it is neither computed nor learnt
    needs: NDArray[np.int64]  # [scores, Need]: the conditions of each score
    begins: NDArray[np.int64]  # [members + 1]: the first score of each member
    states: NDArray[
        np.int64
    ]  # [members]: addresses of the members' states; outside of kernels a `MemberStates`


class EnsembleTest(NamedTuple):
    """The tests of the ensemble against the champion or, on single lines, against the mix."""

    pair: NDArray[np.float64]  # [paired SIZE]: test of the ensemble's rewards against the champion's
    loss: NDArray[np.float64]  # [paired SIZE]: test of the ensemble's losses against the champion's
    fair: NDArray[np.float64]  # [2]: sums of propensity-weighted differences of losses and of their squares
    loss_spread: NDArray[np.float64]  # [SPREAD_SIZE]
    policies: NDArray[np.float64]  # [RewardOwner, POLICY_SIZE]: like those of a live config
    level: NDArray[np.float64]  # [1]: probability of error of both tests together
    updates: NDArray[np.int64]  # [1]: learnt events with scores of all actions since both tests began
    leads: NDArray[np.int64]  # [1]: the learnt event since which the ensemble leads by losses; or 0


class Ensemble(NamedTuple):
    """The weighted sum of scores; see `onlineauto.engine.ensemble.combiner_kernels`.

    An axis ``inputs`` has one entry for each possible live config, then one for each score of a member, then
    one for the constant. For bandits, entries for the levels of live configs and scores follow: for the mean
    of each over the actions of an event.
    """

    on: bool  # the ensemble learns
    serves: bool  # the ensemble is proved, and predicts
    n_levels: int  # 0 on single lines
    weights: NDArray[np.float64]  # [inputs]
    spread: NDArray[np.float64]  # [inputs, inputs]: covariance of the weights
    range: NDArray[np.float64]  # [2]: lowest and highest cost learnt
    error: NDArray[np.float64]  # [2]: mean squared error of the latest events; number of these events
    costs: NDArray[np.float64]  # [CostSoFar]: of the latest events of bandits, on the scale of `range`
    scratch: NDArray[np.float64]  # [2, inputs]
    test: EnsembleTest
    members: Members


class CostSoFar(IntEnum):
    """Entries of `Ensemble.costs`."""

    EVENTS = 0
    MEAN = 1
    VARIANCE = 2


class Known(IntEnum):
    """Entries of `Inputs.tally`."""

    FEATURES = 0
    NUMBERS = 1
    ACTIONS = 2
    WIDEST = 3  # largest number of features of a context that may be crossed, noted by crossing members


MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS = 300, 64, 32
"""Limits of what members know: inputs that are features, numbers among them, and actions."""

MOST_CROSSED = 64, 24, 10
"""Maximum number of features of a context that are crossed with the action singly, in pairs, in triples."""

MOST_PRODUCTS, MOST_KEYS = 512, 8
"""Maximum number of products of a context: 1 + 24 + 24 · 23 / 2, or 1 + 10 + 45 + 120, rounded up; and of
features of a joined action that are crossed."""

OF_INPUTS, OF_CROSSES, OF_BASELINE, OF_ACTIONS, CROWDING, WIDE = 0, 1, 4, 7, 8, 9
"""Entries of the counts of wide events, and the number of entries.

`OF_INPUTS` counts events with more new features or numbers than the tables have capacity for. At `OF_CROSSES`
and `OF_BASELINE` begin three counts each: of events wider than the member's limits, in ascending order.
`OF_ACTIONS` counts events with more new actions than there is capacity for. `CROWDING` grows by 7 with each
of these and falls by 1 with each other event, so it grows while they are more than one event in eight.
"""


class InputKind(IntEnum):
    """Kinds of inputs that are not numbers, in `Inputs.number`."""

    WORD = -1  # a feature that only ever had the value 1
    BIN = -2  # a bin of a number


BINS, FIRST_BINS, GROUPS, RING = 24, 12, 8, 128
"""Bins of a number: the maximum and the initial number of bins, the initial number of groups of bins, and the
number of latest values that decide on new bins. Features crossed with each other use groups of bins."""
