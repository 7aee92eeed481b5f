"""Records of the ensemble: what it has learnt, and the inputs of its members."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.estimators.difference_kernels import SPREAD_SIZE
from onlineauto.estimators.interval_kernels import POLICY_SIZE
from onlineauto.estimators.paired_kernels import SIZE as PAIR_SIZE
from onlineauto.state.schema import (
    between,
    counts,
    declare,
    field,
    finite,
    jointly,
    keep,
    nested,
    record,
    scratch,
    untouched,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.state.stored import Stored


MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS = 300, 64, 128
"""Limits of what members know: inputs that are features, numbers among them, and actions."""

MOST_IN_VECTORS, MOST_VECTORS, PROJECTED = 384, 4, 16
"""Limits of long vectors: all their numbers, the known vectors, and the numbers they are projected to."""

MOST_CROSSED = 64, 24, 10
"""Maximum number of features of a context that are crossed with the action singly, in pairs, in triples."""

MOST_PRODUCTS, MOST_KEYS = 512, 8
"""Maximum number of products of a context: 1 + 24 + 24 · 23 / 2, or 1 + 10 + 45 + 120, rounded up; and of
features of a joined action that are crossed."""


class WideCount(IntEnum):
    """Entries of `Inputs.wide`, the counts of wide events.

    `INPUTS` counts events with more new features or numbers than there is capacity for. At `CROSSES` and
    `BASELINE` begin three counts each: of events wider than the member's limits, in ascending order.
    `ACTIONS` counts events with more new actions than there is capacity for. `CROWDING` grows by 7 with each
    of these and falls by 1 with each other event, so it grows while they are more than one event in eight.
    """

    INPUTS = 0
    CROSSES = 1
    BASELINE = 4
    ACTIONS = 7
    CROWDING = 8


class InputKind(IntEnum):
    """Kinds of inputs that are not numbers, in `Inputs.number`."""

    WORD = -1  # a feature that only ever had the value 1
    BIN = -2  # a bin of a number


BINS, FIRST_BINS, GROUPS, RING = 24, 12, 8, 128
"""Bins of a number: the maximum and the initial number of bins, the initial number of groups of bins, and the
number of latest values that decide on new bins. Features crossed with each other use groups of bins."""


MEMORY = 16384.0
"""Number of latest events that determine means and variances of inputs."""


class CostSoFar(IntEnum):
    """Entries of `Ensemble.costs`."""

    EVENTS = 0
    MEAN = 1
    VARIANCE = 2


class Shrinkage(IntEnum):
    """Entries of `Ensemble.shrinkage`: faded sums over logged actions, on the scale of `range`."""

    EVENTS = 0
    OWN = 1  # squared differences of the ensemble's scores from their level
    BOTH = 2  # products of these and of the differences of the scores of `means`
    MEANS = 3  # squared differences of the scores of `means` from their level
    OWN_COST = 4  # products of the ensemble's differences and those of the costs
    MEANS_COST = 5  # products of the differences of `means` and of the costs
    COST = 6  # squared differences of the costs


class Known(IntEnum):
    """Entries of `Inputs.tally`."""

    FEATURES = 0
    NUMBERS = 1
    ACTIONS = 2
    WIDEST = 3  # largest number of features of a context that may be crossed, noted by crossing members


_INPUT, _BIN = between(0, MOST_FEATURES - 1), between(0, BINS - 1)
_TALLY = between(0, max(MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS) + 1)


def _features(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return stored hashes of known features, which the table has room for."""
    values = stored.array_like(array)
    if np.count_nonzero(values) > MOST_FEATURES:
        raise stored.fail(f"at most {MOST_FEATURES} features")
    return values


_FEW = 32
"""Entries by action that a model file has while no more are in use."""


def few_actions(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array by action without the entries of many actions, if none of these are in use."""
    return array if array[..., _FEW:].any() else array[..., :_FEW]


def all_actions(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return a stored array of `few_actions` in the shape of `array`, with zeros at the end."""
    values = stored.array(array.dtype, array.shape, (*array.shape[:-1], _FEW))
    result = np.zeros_like(array)
    result[..., : values.shape[-1]] = values
    return result


def _few_seen(seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of `few_actions`, and the total."""
    return np.append(few_actions(seen[:-1]), seen[-1:])


def _all_seen(stored: Stored, seen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stored counts of actions, and the total."""
    values = stored.counts((-1,))
    if len(values) not in (len(seen), _FEW + 1):
        raise stored.fail(f"counts of {_FEW} or {MOST_ACTIONS} actions, and the total")
    return np.insert(values, -1, np.zeros(len(seen) - len(values), np.int64))


def _any(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array, empty if all of it is 0."""
    return array if array.any() else array[:0]


def _if_any(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return a stored array of `_any`, whose numbers are not negative."""
    values = stored.array(array.dtype, array.shape, (0,))
    if values.size and values.min() < 0:
        raise stored.fail("counts")
    return values if values.size else np.zeros_like(array)


def _placed(stored: Stored, array: NDArray[Any]) -> NDArray[Any]:
    """Return the array unchanged: weights are read by the names of scores, which may have changed."""
    del stored
    return array


@record
class InputNumbers(NamedTuple):
    """The numbers among the inputs of members, with their bins; see the ensemble's `number_bin_kernels`."""

    # The input of each number
    of_number: NDArray[np.int64] = field("numbers", read=_INPUT, merge=jointly, predicts=True)
    # Whether the number is part of a feature's name, not its value, or a projection of vectors: no bin of it
    # is an input
    named: NDArray[np.bool_] = field("numbers", merge=jointly, predicts=True)
    mean: NDArray[np.float64] = field("numbers", read=finite, merge=jointly, predicts=True)
    variance: NDArray[np.float64] = field("numbers", read=finite, merge=jointly, predicts=True)
    # The latest values of each number, in a ring buffer
    latest: NDArray[np.float64] = field("numbers", RING, read=finite, merge=jointly)
    # Number of bins of each number
    bins: NDArray[np.int64] = field("numbers", read=between(0, BINS), merge=jointly, predicts=True)
    # Upper ends of the bins, in ascending order
    cut: NDArray[np.float64] = field("numbers", BINS, read=finite, merge=jointly, predicts=True)
    # The input of each bin; the constant's for a bin without one
    of_bin: NDArray[np.int64] = field("numbers", BINS, read=_INPUT, merge=jointly, predicts=True)
    # The permanent name of each bin
    part: NDArray[np.int64] = field("numbers", BINS, read=_BIN, merge=jointly, predicts=True)
    # The group of each bin
    group: NDArray[np.int64] = field("numbers", BINS, read=_BIN, merge=jointly, predicts=True)
    # Scratch
    sorted: NDArray[np.float64] = scratch("ring")


class InVectors(IntEnum):
    """Entries of `InputVectors.vectors`."""

    VECTORS = 0
    NUMBERS = 1
    SUMMED = 2  # events in `products`
    PROJECTED = 3


def _used_by_vectors(vectors: InputVectors) -> dict[str, int]:
    """Return the used part of axes: products are needed until there is a projection."""
    _, numbers, _, projected = vectors.vectors.tolist()
    return {"in_vectors": numbers, "summed": 0 if projected else numbers, "projected": projected}


@record
class InputVectors(NamedTuple):
    """The vectors of contexts, one after the other, and their projection; see `vector_kernels`."""

    # The numbers of known vectors and of their numbers, ...
    vectors: NDArray[np.int64] = field(len(InVectors), read=counts(), merge=jointly, predicts=True, since=2)
    # Hash of the first number of each vector
    heads: NDArray[np.uint64] = field(MOST_VECTORS, merge=jointly, predicts=True, since=2)
    # Index of that number; of the number after the last one
    starts: NDArray[np.int64] = field(
        MOST_VECTORS + 1, read=between(0, MOST_IN_VECTORS), merge=jointly, predicts=True, since=2
    )
    # Number of learnt events with each vector
    vector_seen: NDArray[np.int64] = field(MOST_VECTORS, read=counts(), merge=jointly, since=2)
    vector_mean: NDArray[np.float64] = field("in_vectors", read=finite, merge=jointly, predicts=True, since=2)
    vector_variance: NDArray[np.float64] = field(
        "in_vectors", read=finite, merge=jointly, predicts=True, since=2
    )
    # Sums of products of standardised numbers
    products: NDArray[np.float32] = field("summed", "summed", read=finite, merge=jointly, since=2)
    # Directions on which vectors are projected
    basis: NDArray[np.float32] = field(
        "projected", "in_vectors", read=finite, merge=jointly, predicts=True, since=2
    )
    directions: NDArray[np.float32] = scratch("projected", "in_vectors")


declare(InputVectors, used=_used_by_vectors)


@record
class Renewal(NamedTuple):
    """Uses of inputs and of features that wait to become inputs; see the ensemble's `renewal_kernels`."""

    # Uses of each input, of the constant by events
    uses: NDArray[np.int64] = field("inputs", read=_if_any, write=_any, merge=jointly, since=2)
    # Hash of a waiting feature + 1, or 0; and the majority of its uses
    waiting: NDArray[np.uint64] = field("waiting", read=_if_any, write=_any, merge=jointly, since=2)
    votes: NDArray[np.int64] = field("waiting", read=_if_any, write=_any, merge=jointly, since=2)
    # The learnt event after which an input was last replaced, or 0
    at: NDArray[np.int64] = field("inputs", saved=False)


@record
class Inputs(NamedTuple):
    """Inputs that members share: the known features of contexts, and the known actions.

    The first input is the constant.
    """

    # Number of known features, ...; of actions, limit + 1 means too many
    tally: NDArray[np.int64] = field(len(Known), read=_TALLY, merge=jointly, predicts=True)
    # Hash of a known feature + 1, or 0
    feature: NDArray[np.uint64] = field("table", read=_features, merge=jointly, predicts=True)
    # Input of that feature
    input: NDArray[np.int64] = field("table", read=_INPUT, merge=jointly, predicts=True)
    # Index of the input among the numbers, or an `InputKind`
    number: NDArray[np.int64] = field(
        "inputs", read=between(-2, MOST_NUMBERS - 1), merge=jointly, predicts=True, initial=-1
    )
    # Index of the number that a word's name belongs to, or -1
    names: NDArray[np.int64] = field(
        "inputs", read=between(-1, MOST_NUMBERS - 1), merge=jointly, predicts=True, initial=-1
    )
    # The number in that name
    amount: NDArray[np.float64] = field("inputs", read=finite, merge=jointly, predicts=True)
    # The input of the bin that this bin was split from, or 0
    divided: NDArray[np.int64] = field("inputs", merge=jointly, predicts=True, saved=False)
    # Number of learnt events that exceeded each limit
    wide: NDArray[np.int64] = field(WideCount.CROWDING + 1, read=counts(), merge=jointly, predicts=True)
    # Number of events learnt with each action; the total
    seen: NDArray[np.int64] = field("seen", read=_all_seen, write=_few_seen, merge=jointly, predicts=True)
    # Key of each known action
    action: NDArray[np.uint64] = field(
        "actions", read=all_actions, write=few_actions, merge=jointly, predicts=True
    )
    numbers: InputNumbers = nested(InputNumbers)
    renewal: Renewal = nested(Renewal)
    vectors: InputVectors = nested(InputVectors)


class Taken(NamedTuple):
    """The inputs of an event, as members read them: scratch memory of a caller of the loop."""

    values: NDArray[np.float32]  # [inputs]: standardised numbers; 1 for the bin that contains a number
    raw: NDArray[np.float64]  # [numbers]: the values before standardisation
    words: NDArray[np.uint32]  # [inputs]: hashes of the features that are not numbers
    n_words: NDArray[np.int64]  # [1]
    # [2, 1 + in_vectors]: 1, then the standardised numbers of vectors; their values, NaN for missing ones
    vectors: NDArray[np.float32]


@record
class Members(NamedTuple):
    """The members that are not live configs, and the inputs that they share. There may be none."""

    inputs: Inputs = nested(Inputs)
    # True if a score rests: it is neither computed nor learnt
    rests: NDArray[np.bool_] = field("scores", merge=keep)
    # The conditions of each score
    needs: NDArray[np.int64] = untouched()
    # The first score of each member
    begins: NDArray[np.int64] = untouched()
    # Addresses of the members' states; outside of kernels a `MemberStates`
    states: NDArray[np.int64] = untouched()


@record
class EnsembleTest(NamedTuple):
    """The tests of the ensemble against the champion or, on single lines, against the mix."""

    # Test of the ensemble's rewards against the champion's
    pair: NDArray[np.float64] = field(PAIR_SIZE, merge=jointly, forgets=True)
    # Test of the ensemble's losses against the champion's
    loss: NDArray[np.float64] = field(PAIR_SIZE, merge=jointly, forgets=True)
    # Sums of propensity-weighted differences of losses and of their squares
    fair: NDArray[np.float64] = field(2, merge=jointly, forgets=True)
    loss_spread: NDArray[np.float64] = field(SPREAD_SIZE, merge=jointly, forgets=True)
    # Like those of a live config
    policies: NDArray[np.float64] = field(2, POLICY_SIZE, merge=jointly, forgets=True)
    # Probability of error of both tests together
    level: NDArray[np.float64] = field(1, read=between(0.0, 1.0), merge=jointly)
    # Learnt events with scores of all actions since both tests began
    updates: NDArray[np.int64] = field(1, read=counts(), merge=jointly, forgets=True)
    # The learnt event since which the ensemble leads by losses; or 0
    leads: NDArray[np.int64] = field(1, read=counts(), merge=jointly, forgets=True)


@record
class Ensemble(NamedTuple):
    """The weighted sum of scores; see `onlineauto.engine.ensemble.combiner_kernels`.

    An axis ``inputs`` has one entry for each possible live config, then one for each score of a member, then
    one for the constant. For bandits, entries for the levels of live configs and scores follow: for the mean
    of each over the actions of an event.
    """

    on: bool  # the ensemble learns
    serves: bool  # the ensemble is proved, and predicts
    n_levels: int  # 0 on single lines
    means: int  # the score of the member `means`, -1 if there is none
    weights: NDArray[np.float64] = field("inputs", read=_placed, merge=jointly, forgets=True, predicts=True)
    # Covariance of the weights
    spread: NDArray[np.float64] = field("inputs", "inputs", read=_placed, merge=jointly, forgets=True)
    # Lowest and highest cost learnt
    range: NDArray[np.float64] = field(2, read=finite, merge=jointly, forgets=True, predicts=True)
    # Mean squared error of the latest events; number of these events
    error: NDArray[np.float64] = field(2, read=finite, merge=jointly, forgets=True)
    # Of the latest events of bandits, on the scale of `range`
    costs: NDArray[np.float64] = field(len(CostSoFar), read=finite, merge=jointly, forgets=True)
    # Variance of the costs of the latest events of bandits, which all count alike, on the scale of `range`
    variance: NDArray[np.float64] = field(1, read=between(0.0, 9.0), merge=jointly, forgets=True, since=2)
    # The sums that decide how much scores are shrunk
    shrinkage: NDArray[np.float64] = field(
        len(Shrinkage), read=finite, merge=jointly, forgets=True, predicts=True, since=2
    )
    scratch: NDArray[np.float64] = field(2, "inputs", saved=False)
    test: EnsembleTest = nested(EnsembleTest)
    members: Members = untouched()
