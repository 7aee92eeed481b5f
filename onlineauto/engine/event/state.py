"""The records that the kernels of the loop pass around."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.quirks import Quirks
    from onlineauto.estimators.robust_kernels import Test
    from onlineauto.explorers._kernels import Exploration
    from onlineauto.features.records import Interactions, Layout, Numbering, Records, Scratch, Stream
    from onlineauto.jit import F32
    from onlineauto.learners._kernels import Model, Rule

__all__ = [
    "CB",
    "CB_ADF",
    "ROW",
    "SIMPLE",
    "Actions",
    "Buffers",
    "Context",
    "Counted",
    "Inputs",
    "Label",
    "Live",
    "Numbers",
    "Results",
    "Run",
    "Screen",
    "Stack",
    "Taken",
    "Task",
    "Units",
]

SIMPLE, CB_ADF, CB = 0, 1, 2
"""Shapes of events: a single line with a label; one line for each action; all actions on one line."""


class Decay(NamedTuple):
    """The models of ``--epsilon_decay``, the youngest first; the last one is the champion."""

    test: Test
    initial: F32  # ε before the first event
    constant: bool  # ε is the explorer's and does not decay
    explores: bool  # rewards of challengers are estimated for ε-greedy choices, not for greedy ones
    cost_is_reward: bool
    low: F32  # lowest reward
    high: F32  # highest reward
    min_scope: int  # a challenger that is not older is kept
    min_events: int  # a challenger that is younger is not compared
    shift: int
    unlearnt: NDArray[np.float32]  # [4]: a cell of a model that begins anew
    everywhere: bool  # untouched cells must be reset too: their initial value is not `unlearnt`
    place: NDArray[np.int64]  # [models]: the policy whose lanes a model has
    evidence: NDArray[np.float64]  # [i, j <= i, LOWER | UPPER, SIZE]: on model i, since model j began
    epsilon: NDArray[np.float32]  # [1]: the champion's ε at its last prediction
    tally: NDArray[np.int64]  # [3]: PROMOTED, DROPPED, OUTSIDE_RANGE


PROMOTED, DROPPED, OUTSIDE_RANGE = range(3)
"""Entries of a decay's tally: changes of champion; challengers dropped as too old; rewards out of range."""


class Task(NamedTuple):
    """The constants by which events are predicted and learnt, from the options."""

    shape: int
    slots: bool  # events of shape CB_ADF have slots; the loop visits each slot as an event
    n_actions: int  # under ``--cb N``
    numbering: Numbering  # under ``--cb N``
    exploration: Exploration
    decay: Decay
    parts: int  # lanes of a live config
    predicts_apart: bool  # the explorer predicts an event in a walk of its own, before it is learnt
    clip_p: F32
    uniform: bool  # a label without a probability counts as logged uniformly
    link: int
    binary: bool
    training: bool
    quirks: Quirks
    mask: np.uint64  # selects the low bits of a hash that number the cell


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

    tally: NDArray[np.int64]  # [4]: FEATURES, NUMBERS, ACTIONS known so far; more than there can be: too many
    feature: NDArray[np.uint64]  # [places]: hash of a known feature + 1, or 0
    input: NDArray[np.int64]  # [places]: its input
    number: NDArray[np.int64]  # [inputs]: which of the numbers an input is, or `WORD` or `BIN`
    names: NDArray[np.int64]  # [inputs]: which of the numbers the name of a word is about, or -1
    amount: NDArray[np.float64]  # [inputs]: the number in that name
    divided: NDArray[np.int64]  # [inputs]: the input of the bin of which a new bin is a part, 0 for others
    seen: NDArray[np.int64]  # [actions + 1]: events learnt with each action; in all
    action: NDArray[np.uint64]  # [actions]: key of each known action
    numbers: Numbers


class Taken(NamedTuple):
    """The inputs of an event, as members take them: scratch of a caller of the loop."""

    values: NDArray[np.float64]  # [inputs]: numbers standardised, 1 for the bin that a number is in
    raw: NDArray[np.float64]  # [numbers]: the numbers as they are
    words: NDArray[np.uint32]  # [inputs]: hashes of the features that are no numbers
    n_words: NDArray[np.int64]  # [1]


class Stack(NamedTuple):
    """The sum of scores under learnt weights; see `onlineauto.engine.ensemble.combiner_kernels`.

    An axis ``inputs`` has one entry for each live config that there can be, then one for each score of a
    member, and a last one for the constant. There are no members if ``scores`` is empty.
    """

    on: bool  # it learns
    serves: bool  # predictions are the stack's, and not the champion's
    weights: NDArray[np.float64]  # [inputs]
    spread: NDArray[np.float64]  # [inputs, inputs]: covariance of the weights
    range: NDArray[np.float64]  # [2]: lowest and highest cost learnt
    pair: NDArray[np.float64]  # [paired SIZE]: test of its rewards against the champion's
    loss: NDArray[np.float64]  # [paired SIZE]: test of its losses against the champion's
    fair: NDArray[np.float64]  # [2]: sums of differences of losses, by propensity, and of their squares
    loss_spread: NDArray[np.float64]  # [SPREAD_SIZE]
    policies: NDArray[np.float64]  # [SELF | CHAMPION, POLICY_SIZE]: as those of a live config
    level: NDArray[np.float64]  # [1]: probability of error of both tests together
    updates: NDArray[np.int64]  # [1]: events with scores of all actions, learnt since both tests began
    error: NDArray[np.float64]  # [2]: its mean squared error, of the latest events; how many these are
    scratch: NDArray[np.float64]  # [2, inputs]
    inputs: Inputs
    rests: NDArray[np.bool_]  # [scores]: whether a score of a member rests: it is neither computed nor learnt
    needs: NDArray[np.int64]  # [scores, Need]: what must be known for a score
    begins: NDArray[np.int64]  # [members + 1]: the first score of each member
    states: NDArray[
        np.int64
    ]  # [members]: addresses of the members' states; a `MemberStates` outside of kernels


class Live(NamedTuple):
    """The live configs. Number 0 is the champion, and the only one unless there is a search.

    An axis ``slots`` has one entry for each live config that there can be, the first `n` of which are in use.
    """

    n: int  # live configs now
    slot_step: int  # lanes between two live configs
    part_step: int  # lanes between two parts of a live config
    searching: bool
    fill: bool  # a config waits, and there are fewer live configs than there can be
    test: Test
    cost_is_reward: bool
    reversed: bool  # challengers learn in descending order
    lease: NDArray[np.int64]  # [slots]
    updates: NDArray[np.int64]  # [slots]: events learnt since the config is live
    compared: NDArray[np.int64]  # [slots]: those of them on which its rewards were compared
    evidence: NDArray[np.float64]  # [slots, SELF | CHAMPION, LOWER | UPPER, SIZE]
    paired: bool  # paired tests decide, not bounds on the reward of each
    sparing: bool  # rewards are compared on some events only; challengers score all actions only on these
    by_reward: bool  # the reward test can change the champion
    by_loss: bool  # the loss test can change the champion, for configs that are `alike`
    replaceable: bool  # a config waits to replace a challenger that is proved worse
    review: int  # the loop stops when so many events are learnt
    look: int  # the loop stops when `recent` has so many losses
    pairs: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's rewards against the champion's
    losses: NDArray[np.float64]  # [slots, paired SIZE]: tests of a challenger's losses against the champion's
    alike: NDArray[np.bool_]  # [slots]: the losses of config and champion can be compared
    prices: NDArray[np.float64]  # [slots]: gain for each event that is not enough, as a part of the range
    levels: NDArray[np.float64]  # [slots]: probability of error of both tests of a challenger together
    policies: NDArray[np.float64]  # [slots, SELF | CHAMPION, POLICY_SIZE]: sums for intervals, if paired: of
    # the config; and of the champion, at the time when the config became live
    spread: NDArray[np.float64]  # [slots, SPREAD_SIZE]: spread of the differences of losses
    reach: NDArray[np.float64]  # [2]: largest loss; mean of recent losses
    recent: NDArray[np.float64]  # [groups]: sums of the champion's latest losses, of GROUP events each
    fresh: NDArray[np.int64]  # [1]: number of losses in `recent`
    mixing: bool  # a single line's prediction is a weighted mean over all live configs
    mix: NDArray[np.float64]  # [slots]: weights of that mean; they sum to 1
    logged: NDArray[np.float64]  # [PLACES + 1]: events learnt with each logged action, by its place; in all
    draws: NDArray[np.float64]  # [DRAWS_SIZE]: whether the logged actions were drawn anew for each event
    compared_draws: NDArray[np.float64]  # [DRAWS_SIZE]: the same of those on which rewards were compared
    scale: NDArray[np.float64]  # [SCALE_SIZE]: range of rewards, and smallest propensity
    last: NDArray[np.float64]  # [slots, SELF | CHAMPION, 2]: latest importance weight and reward
    decided: NDArray[np.bool_]  # [slots]: not better, until it or the champion has a weight other than 0
    tally: NDArray[np.int64]  # [5]: see the entries below
    counts: NDArray[np.int64]  # [keys]: number of actions with features in each namespace
    sizes: NDArray[np.int64]  # [keys]: number of these features
    met: NDArray[np.bool_]  # [keys]: seen before, or never crossed
    marks: NDArray[np.int64]  # [keys]: the line that counted a namespace last, as a mark
    stack: Stack


LEARNT, MARK, OUTSIDE, N_EVENTS, N_ACTIONS = range(5)
"""Entries of a tally: events learnt; the last mark; rewards outside [0, 1]; events and actions counted."""

PLACES = 64
"""Number of places of actions that are told apart; the last one stands for all behind it."""

GROUP = 32
"""Number of events whose mean loss is one observation of the drift detector."""

SELF, CHAMPION = 0, 1
"""Rows of an estimator: the reward of the config itself; that of the champion over the same events."""

EVENT, STEP, SIGNAL, SLOT = range(4)
"""Entries of a cursor: the next event, the last step done of it, why the loop stopped, and the live config
that the signal is about."""

BLOCK_END, NEW_NAMESPACE, REVIEW_DUE, LEASE_DUE, BOUND_CROSSED, LOSS_CROSSED, PROVED_WORSE = range(7)
STACK_EARNS, STACK_PREDICTS, CHAMPION_EARNS, CHAMPION_PREDICTS = range(7, 11)
"""Signals: the reasons for which the loop stops. The last four are about the stack and the champion: which of
them is proved to earn more, or to predict the costs of logged actions better."""

BEGIN_AGAIN = 11
"""The signal that a number among the first ones has ruined what was learnt, so learning begins again."""

NO_OUTLIER, FAR_COST, FAR_WEIGHT, FAR_PROBABILITY, FAR_VALUE, BEGINS_AGAIN = range(6)
"""Whether and why an event is not learnt though it has a label, or that learning begins again with it. These
are also the places of their counts in `Model.outliers`, and of the first three kinds in `Model.sizes`."""

FIRST_FEATURE = 4
"""Place in `Model.sizes` at which those of features begin."""

MET, RECOUNTED, REVIEWED, SCHEDULED = 1, 2, 3, 4
"""Steps of an event: its namespaces are counted, and counted again by a loop that does so; the review is
checked; the leases are checked."""


FEATURES, NUMBERS, ACTIONS, WIDEST = range(4)
"""Entries of the tally of inputs; the last one is the largest number of features of a context that may be
crossed, which members that cross note."""

MOST_FEATURES, MOST_NUMBERS, MOST_ACTIONS = 300, 64, 32
"""What members can know at most: inputs that are features, numbers among them, and actions."""

WORD, BIN = -1, -2
"""Kinds of inputs that are no numbers: features that only ever had the value 1, and bins of numbers."""

BINS, FIRST_BINS, GROUPS, RING = 24, 12, 8, 128
"""Bins of a number: at most, and at first; into how many groups they are put at first, as features that are
crossed with each other; and how many of the latest numbers decide on bins."""

STREAM, ASIDE, NOTICED = range(3)
"""Standing of events: learnt as part of the stream; only predicted; only predicted, but their namespaces are
counted."""


class Screen(NamedTuple):
    """The estimated gains of many interactions; see `onlineauto.engine.event.screen_kernels`."""

    many: int  # how many are screened, also of namespaces that a run which goes on has not met again yet
    interactions: Interactions  # those of namespaces that it has met
    inside: NDArray[np.bool_]  # [interactions]: the champion has the interaction
    gains: NDArray[np.float64]  # [interactions]
    ends: NDArray[np.int64]  # [interactions]: scratch: where the listed features of each end
    seen: NDArray[np.int64]  # [1]: events since the last change of champion
    table: NDArray[np.float32]  # [cells, 3]: SUM, COUNT, LARGEST of each feature


class Units(NamedTuple):
    """Addresses, in this process, of kernels that few runs need; 0 for those that a run does not need.

    Each is compiled and loaded when the options ask for it. The loop, which calls it by its address, is
    compiled without it.
    """

    explore: int  # scores to probabilities, but for ε-greedy
    members: int  # the models of an ensemble
    bounds: int  # plausible costs
    ccb_slot: int  # what a CCB slot leaves to the next
    before_event: int  # namespaces, leases and reviews of a search
    after_event: int  # its comparisons of live configs
    score_stack: int  # scores of the stack
    learn_stack: int  # its weights and tests
    learn_regression: int  # least squares of members
    score_members: NDArray[
        np.int64
    ]  # [members]: the kernels of each, see `onlineauto.engine.ensemble.member`
    learn_members: NDArray[np.int64]  # [members]
    grow_members: NDArray[np.int64]  # [members]


class Context(NamedTuple):
    """The arrays and constants of the loop, the same for many blocks."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    again: Interactions  # for a second walk over the features, when VW has forgotten some
    scratch: Scratch
    model: Model
    live: Live
    screen: Screen
    units: Units
    buffers: Buffers


class Run(NamedTuple):
    """The context of the loop, but for its buffers, together with the block that it works on."""

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
"""Columns of `Outcomes` that the loop fills, as a record for each event."""


class Results(NamedTuple):
    """The arrays that the loop fills for a block, and the names by which it draws."""

    rows: Records  # [n_events]
    action: NDArray[np.int32]  # [n_actions of all events]
    score: NDArray[np.float32]  # [n_actions of all events]
    name: NDArray[np.uint64]  # [n_events]: hash of an event's name, by which its action is drawn; or empty
    named: NDArray[np.bool_]  # [n_events]: the event has a name


class Buffers(NamedTuple):
    """Working arrays that grow with the largest action and the longest event.

    An axis ``actions`` is as long as the longest event; ``slots + 3`` lets live configs be scored in fours.
    Behind them are the scores of the members, and that of the stack.
    """

    cell: NDArray[np.uint32]
    name: NDArray[np.uint64]  # whole hashes, for an explorer that needs them
    value: NDArray[np.float32]
    runs: Records  # [1 + products]: runs of features that the same live configs use
    score: NDArray[np.float32]  # [actions, slots + 3 + scores + 1]
    target: NDArray[np.float32]  # [actions]: estimated costs
    squares: NDArray[np.float32]  # [slots]: Σ x² of the listed action, if the rule needs it
    first_squares: NDArray[np.float32]  # [actions]: Σ x² as the first learner got it, NaN before
    total: NDArray[np.float32]  # [2, slots + 3]: sums of what all actions share; sums of one action
    cost: NDArray[np.float32]  # [actions]: estimated costs, for online cover
    order: NDArray[np.int32]  # [actions]: a policy's ranking
    taken: Taken
    scored: NDArray[np.bool_]  # [scores]: whether members have given the event a score
    members: NDArray[
        np.int64
    ]  # [members]: addresses of the scratch of each; a `SealedRecords` outside of kernels
    known: NDArray[np.int64]  # [actions]: for members: the index of each action that was learnt, or -1
    explored: NDArray[np.float32]  # [4, actions]: scratch of the explorer
    parted: NDArray[np.int64]  # [1 + products]: products, those that all actions share first


class Counted(NamedTuple):
    """The numbers of features that VW reports of an example."""

    own: int  # own features and the constant
    crossed: int  # features of the champion's interactions


class Actions(NamedTuple):
    """The lines of an event's actions, and the groups [0, n_shared) that they share."""

    first: int  # line of the first action; the only line under ``--cb N``
    n: int
    n_lines: int  # lines of the event, with the shared one
    n_shared: int
    room: int  # first free feature behind those that the shared line needs
    repeated: int  # shared features that VW counts for each action
    once: int  # shared features that VW counts once


class Label(NamedTuple):
    """The logged action of an event and its cost, or the label of a single line."""

    action: np.int64  # 0-based, -1 if none
    cost: F32
    probability: F32
    weight: F32  # importance weight
    initial: F32  # initial prediction
