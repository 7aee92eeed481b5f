"""Records that the kernels of the loop pass around, and its cursor and signals."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Taken
    from onlineauto.engine.records.search import Live, Screen
    from onlineauto.engine.records.task import Task
    from onlineauto.features.records import Interactions, Layout, Records, Scratch, Stream
    from onlineauto.jit import F32
    from onlineauto.learners.gradient_kernels import Model, Rule


class Cursor(IntEnum):
    """Entries of a cursor."""

    EVENT = 0  # index of the next event
    STEP = 1  # the last completed step of that event
    SIGNAL = 2  # why the loop stopped
    SLOT = 3  # the live config that the signal is about


class LoopSignal(IntEnum):
    """The reasons for which the loop stops."""

    BLOCK_END = 0
    NEW_NAMESPACE = 1
    REVIEW_DUE = 2
    LEASE_DUE = 3
    BOUND_CROSSED = 4
    LOSS_CROSSED = 5
    PROVED_WORSE = 6
    ENSEMBLE_EARNS = 7  # the ensemble is proved to earn more than its fallback
    ENSEMBLE_PREDICTS = 8  # the ensemble is proved to predict the costs of logged actions better
    CHAMPION_EARNS = 9
    CHAMPION_PREDICTS = 10
    BEGIN_AGAIN = 11  # the first events had an extreme number, or costs far from 0, so learning restarts


class Outlier(IntEnum):
    """The reason why a labelled event is not learnt, or why learning restarts with it.

    The values are also indices of their counts in `Model.outliers`, and of the first three kinds in
    `Model.sizes`.
    """

    NONE = 0
    FAR_COST = 1
    FAR_WEIGHT = 2
    FAR_PROBABILITY = 3
    FAR_VALUE = 4
    BEGINS_AGAIN = 5


class Step(IntEnum):
    """Steps of an event; 0 means none."""

    COUNTED = 1  # its namespaces are counted
    RECOUNTED = 2  # they are counted again, by the loop of exact mode
    REVIEWED = 3
    SCHEDULED = 4  # the leases are checked


class EventMode(IntEnum):
    """The treatment of events by the loop: learnt, or only predicted."""

    LEARN = 0  # learnt as part of the stream
    PREDICT = 1  # only predicted
    PREDICT_AND_COUNT = 2  # only predicted, but their namespaces are counted


ANY_VALUE = 0
"""Index in `Model.sizes` of the largest value of the features of an event."""

FIRST_FEATURE = 4
"""Index in `Model.sizes` of the first feature's size."""


class Units(NamedTuple):
    """Addresses, in this process, of optional kernels; 0 for a kernel that this run does not need.

    Each is compiled and loaded when the options require it. The loop calls the kernel by its address and is
    compiled without it.
    """

    explore: int  # converts scores to probabilities, except for ε-greedy
    policies: int  # updates the models of an explorer with several models
    bounds: int  # computes plausible costs
    ccb_slot: int  # fills in the row of a CCB slot; later slots cannot choose its action
    before_event: int  # counts namespaces, checks leases and reviews of a search
    after_event: int  # compares live configs
    score_ensemble: int  # computes scores of the ensemble
    learn_ensemble: int  # learns the ensemble's weights and updates its tests
    learn_regression: int  # runs least squares of members
    grow_regression: int  # prepares the regressions of members for new inputs and actions
    # [members]: kernels of each member, see `onlineauto.engine.ensemble.member`
    score_members: NDArray[np.int64]
    learn_members: NDArray[np.int64]  # [members]
    grow_members: NDArray[np.int64]  # [members]


class Context(NamedTuple):
    """The arrays and constants of the loop, shared by many blocks."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    again: Interactions  # for a second pass over the features, when VW has dropped some of them
    scratch: Scratch
    model: Model
    live: Live
    screen: Screen
    units: Units
    buffers: Buffers


class LoopRun(NamedTuple):
    """The context of the loop without its buffers, and the block that is processed."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    again: Interactions
    scratch: Scratch
    stream: Stream
    model: Model
    live: Live
    screen: Screen


ROW = np.dtype(
    [
        ("n_features", np.int64),
        ("shown_features", np.int64),
        ("known_action", np.int64),
        ("action_start", np.int64),
        ("n_actions", np.int64),
        ("loss", np.float32),
        ("prediction", np.float32),
        ("raw", np.float32),
        ("known_cost", np.float32),
        ("known_probability", np.float32),
        ("labelled", np.bool_),
        ("outlier", np.uint8),
    ],
    align=True,
)
"""Columns of `Outcomes` that the loop fills, as one record for each event."""


HANDED = np.dtype(
    [
        ("first", np.int64),
        ("n", np.int64),
        ("n_lines", np.int64),
        ("n_shared", np.int64),
        ("room", np.int64),
        ("repeated", np.int64),
        ("once", np.int64),
        ("action", np.int64),
        ("cost", np.float32),
        ("probability", np.float32),
        ("weight", np.float32),
        ("initial", np.float32),
        ("kept", np.float32),
        ("learns", np.bool_),
    ],
    align=True,
)
"""An event as the live configs have opened it: the fields of `Actions` and `Label`, its `keep_weight`, and
whether it is learnt."""


class Ahead(NamedTuple):
    """The arrays of events that live configs hand over to an ensemble that follows on another thread."""

    handed: Records  # [n_events]; empty if the ensemble does not follow
    score: NDArray[np.float32]  # [n_actions of all events, slots + 1]: scores before learning, learnt part
    numbers: NDArray[np.float64]  # [n_events, NUMBERS]: see `onlineauto.engine.loop.follow_kernels`


class Results(NamedTuple):
    """The arrays that the loop fills for a block, and the names that seed its draws."""

    rows: Records  # [n_events]
    action: NDArray[np.int32]  # [n_actions of all events]
    score: NDArray[np.float32]  # [n_actions of all events]
    name: NDArray[np.uint64]  # [n_events]: hash of the event's name, which seeds the draw; or empty
    named: NDArray[np.bool_]  # [n_events]: the event has a name
    ahead: Ahead


class MemberBuffers(NamedTuple):
    """Working arrays of the members of an ensemble."""

    taken: Taken
    scored: NDArray[np.bool_]  # [scores]: whether members have scored the event
    # [members]: addresses of each member's scratch; outside of kernels a `SealedRecords`
    scratch: NDArray[np.int64]
    known: NDArray[np.int64]  # [actions]: the index of each action that was learnt before, or -1
    crossed: NDArray[np.uint64]  # [Crossed, MOST_PRODUCTS]: products of the context, see `product_kernels`
    ends: NDArray[np.int64]  # [Ends]
    keys: NDArray[np.uint64]  # [actions, MOST_KEYS + 1]: by which the context is crossed with joined actions
    n_keys: NDArray[np.int64]  # [actions]: number of these keys, 0 before they are computed
    totals: NDArray[np.float64]  # [columns of scores]: sums of the scores of all actions


class Buffers(NamedTuple):
    """Working arrays that grow with the largest action and the longest event.

    An axis ``actions`` is as long as the longest event. ``slots + 3`` allows live configs to be scored four
    at a time. The columns after that have the scores of the members and the score of the ensemble.
    """

    cell: NDArray[np.uint32]
    name: NDArray[np.uint64]  # 64-bit hashes, for an explorer that needs them
    value: NDArray[np.float32]
    runs: Records  # [1 + products]: runs of features that are used by the same live configs
    score: NDArray[np.float32]  # [actions, slots + 3 + scores + 1]
    target: NDArray[np.float32]  # [actions]: estimated costs
    squares: NDArray[np.float32]  # [slots]: Σ x² of the listed action, if the rule needs it
    first_squares: NDArray[np.float32]  # [actions]: Σ x² for the first learner that needed it, NaN before
    total: NDArray[np.float32]  # [2, slots + 3]: sums over features shared by all actions; sums of one action
    cost: NDArray[np.float32]  # [actions]: estimated costs, for online cover
    order: NDArray[np.int32]  # [actions]: the ranking of a policy
    members: MemberBuffers
    explored: NDArray[np.float32]  # [6, actions]: scratch of the explorer, and of new actions
    parted: NDArray[np.int64]  # [1 + products]: indices of products, those shared by all actions first


class Counted(NamedTuple):
    """The numbers of features that VW reports for an example."""

    own: int  # own features and the constant
    crossed: int  # features of the champion's interactions


class Actions(NamedTuple):
    """The lines of an event's actions, and the feature groups [0, n_shared) that the actions share."""

    first: int  # line of the first action; the only line under ``--cb N``
    n: int
    n_lines: int  # lines of the event, including the shared line
    n_shared: int
    room: int  # first free feature after those of the shared line
    repeated: int  # shared features that VW counts for each action
    once: int  # shared features that VW counts once


class Label(NamedTuple):
    """The logged action of an event and its cost, or the label of a single line."""

    action: np.int64  # 0-based, -1 if none
    cost: F32
    probability: F32
    weight: F32  # importance weight
    initial: F32  # initial prediction: of a single line its own, of a bandit the origin of costs
