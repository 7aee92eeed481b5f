"""Records of the ensemble: what it has learnt, and the inputs of its members."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Numbers(NamedTuple):
    """The numbers among the inputs of members, with their bins; see the ensemble's `number_bin_kernels`."""

    of_number: NDArray[np.int64]  # [numbers]: the input of each
    named: NDArray[np.bool_]  # [numbers]: whether names tell it, and not values
    mean: NDArray[np.float64]  # [numbers]
    variance: NDArray[np.float64]  # [numbers]
    latest: NDArray[np.float64]  # [numbers, RING]: the latest of each, in a ring
    bins: NDArray[np.int64]  # [numbers]: how many bins each has
    cut: NDArray[np.float64]  # [numbers, BINS]: where the bins of each end, in ascending order
    of_bin: NDArray[np.int64]  # [numbers, BINS]: the input of each bin, that of the constant if it has none
    part: NDArray[np.int64]  # [numbers, BINS]: the name of each bin, which it keeps
    group: NDArray[np.int64]  # [numbers, BINS]: the group of each bin
    sorted: NDArray[np.float64]  # [RING]: scratch


class Inputs(NamedTuple):
    """Inputs that members share: the known features of contexts, and the known actions.

    The first input is the constant.
    """

    tally: NDArray[np.int64]  # [Known]: how many are known so far; more than there can be: too many
    feature: NDArray[np.uint64]  # [places]: hash of a known feature + 1, or 0
    input: NDArray[np.int64]  # [places]: its input
    number: NDArray[np.int64]  # [inputs]: which of the numbers an input is, or an `InputKind`
    names: NDArray[np.int64]  # [inputs]: which of the numbers the name of a word is about, or -1
    amount: NDArray[np.float64]  # [inputs]: the number in that name
    divided: NDArray[np.int64]  # [inputs]: the input of the bin of which a new bin is a part, 0 for others
    wide: NDArray[np.int64]  # [WIDE]: learnt events that were too wide, by what they were too wide for
    seen: NDArray[np.int64]  # [actions + 1]: events learnt with each action; in all
    action: NDArray[np.uint64]  # [actions]: key of each known action
    numbers: Numbers


class Taken(NamedTuple):
    """The inputs of an event, as members take them: scratch of a caller of the loop."""

    values: NDArray[np.float64]  # [inputs]: numbers standardised, 1 for the bin that a number is in
    raw: NDArray[np.float64]  # [numbers]: the numbers as they are
    words: NDArray[np.uint32]  # [inputs]: hashes of the features that are no numbers
    n_words: NDArray[np.int64]  # [1]


class Members(NamedTuple):
    """The members that are not live configs, and the inputs that they share. There may be none."""

    inputs: Inputs
    rests: NDArray[np.bool_]  # [scores]: whether a score of a member rests: it is neither computed nor learnt
    needs: NDArray[np.int64]  # [scores, Need]: what must be known for a score
    begins: NDArray[np.int64]  # [members + 1]: the first score of each member
    states: NDArray[
        np.int64
    ]  # [members]: addresses of the members' states; a `MemberStates` outside of kernels


class EnsembleTest(NamedTuple):
    """The tests of the ensemble against the champion or, on single lines, against the mix."""

    pair: NDArray[np.float64]  # [paired SIZE]: test of its rewards against the champion's
    loss: NDArray[np.float64]  # [paired SIZE]: test of its losses against the champion's
    fair: NDArray[np.float64]  # [2]: sums of differences of losses, by propensity, and of their squares
    loss_spread: NDArray[np.float64]  # [SPREAD_SIZE]
    policies: NDArray[np.float64]  # [Whose, POLICY_SIZE]: as those of a live config
    level: NDArray[np.float64]  # [1]: probability of error of both tests together
    updates: NDArray[np.int64]  # [1]: events with scores of all actions, learnt since both tests began


class Ensemble(NamedTuple):
    """The sum of scores under learnt weights; see `onlineauto.engine.ensemble.combiner_kernels`.

    An axis ``inputs`` has one entry for each live config that there can be, then one for each score of a
    member, and a last one for the constant.
    """

    on: bool  # it learns
    serves: bool  # predictions are the ensemble's, and not the champion's
    weights: NDArray[np.float64]  # [inputs]
    spread: NDArray[np.float64]  # [inputs, inputs]: covariance of the weights
    range: NDArray[np.float64]  # [2]: lowest and highest cost learnt
    error: NDArray[np.float64]  # [2]: its mean squared error, of the latest events; how many these are
    scratch: NDArray[np.float64]  # [2, inputs]
    test: EnsembleTest
    members: Members


class Known(IntEnum):
    """Entries of `Inputs.tally`."""

    FEATURES = 0
    NUMBERS = 1
    ACTIONS = 2
    WIDEST = 3  # largest number of features of a context that may be crossed, which members that cross note


MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS = 300, 64, 32
"""What members can know at most: inputs that are features, numbers among them, and actions."""

OF_INPUTS, OF_CROSSES, OF_BASELINE, WIDE = 0, 1, 4, 7
"""Entries of the counts of wide events: with more new features or numbers than there is room for; and those
of which members cross at most so many features, of each member three in ascending order. How many counts."""


class InputKind(IntEnum):
    """Kinds of inputs that are no numbers, in `Inputs.number`."""

    WORD = -1  # a feature that only ever had the value 1
    BIN = -2  # a bin of a number


BINS, FIRST_BINS, GROUPS, RING = 24, 12, 8, 128
"""Bins of a number: at most, and at first; into how many groups they are put at first, as features that are
crossed with each other; and how many of the latest numbers decide on bins."""
