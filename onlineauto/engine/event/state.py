"""What the loop works on: the records that its kernels pass around."""

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
    "Label",
    "Live",
    "Results",
    "Run",
    "Screen",
    "Task",
]

SIMPLE, CB_ADF, CB = 0, 1, 2
"""Shapes of events: one label a line; one action a line; all actions on one line."""


class Decay(NamedTuple):
    """The models of ``--epsilon_decay``, the champion last; the one that began last is the first."""

    test: Test
    initial: F32  # ε before the first event
    constant: bool  # ε is that of the explorer
    explores: bool  # a challenger's reward is that of exploring
    cost_is_reward: bool
    low: F32  # lowest reward
    high: F32
    min_scope: int
    min_events: int
    shift: int
    unlearnt: NDArray[np.float32]  # [4]: a cell of a model that begins anew
    everywhere: bool  # also cells that nothing has touched are not so
    place: NDArray[np.int64]  # [models]: which of the policies' lanes a model has
    evidence: NDArray[
        np.float64
    ]  # [models, models, LOWER | UPPER, SIZE]: of each, since each before it began
    epsilon: NDArray[np.float32]  # [1]: the champion's ε when it predicted last
    tally: NDArray[np.int64]  # [3]: PROMOTED, DROPPED, OUTSIDE_RANGE


PROMOTED, DROPPED, OUTSIDE_RANGE = range(3)
"""Entries of the tally of a decay: changes of champion; challengers that grew old; rewards out of range."""


class Task(NamedTuple):
    """What to do with an event."""

    shape: int
    slots: bool  # events of shape CB_ADF have slots, which the loop goes through one by one
    n_actions: int  # of ``--cb N``
    numbering: Numbering  # of ``--cb N``
    exploration: Exploration
    decay: Decay
    parts: int  # lanes of a live slot
    predicts_apart: bool  # the explorer predicts an event before it learns it, and not on the way
    clip_p: F32
    uniform: bool  # a label without a probability was logged uniformly
    link: int
    binary: bool
    training: bool
    quirks: Quirks
    mask: np.uint64  # low bits of a hash that are the cell


class Live(NamedTuple):
    """The live slots; slot 0 is the champion, and the only one unless there is a search."""

    n: int  # live slots now
    slot_step: int  # lanes between two slots
    part_step: int  # and between the parts of one, if it has several
    searching: bool
    fill: bool  # an empty place waits for a config
    test: Test
    cost_is_reward: bool
    reversed: bool
    lease: NDArray[np.int64]  # [slots]
    updates: NDArray[np.int64]  # [slots]: events learnt since the slot got its config
    evidence: NDArray[np.float64]  # [slots, SELF | CHAMPION, LOWER | UPPER, SIZE]
    paired: bool  # the pairs decide, and not the bounds
    by_reward: bool  # rewards may carry a change of champion
    by_loss: bool  # so may losses, where configs are alike
    replaceable: bool  # a config waits for the place of one that is worse
    review: int  # stop when so many events are learnt
    pairs: NDArray[np.float64]  # [slots, paired SIZE]: what each challenger earns against the champion
    losses: NDArray[np.float64]  # [slots, paired SIZE]: and what it loses less
    alike: NDArray[np.bool_]  # [slots]: by their losses challenger and champion can be told apart
    prices: NDArray[np.float64]  # [slots]: what a challenger must gain by an event, as a part of the range
    levels: NDArray[np.float64]  # [slots]: probability of error that each of these tests has
    policies: NDArray[np.float64]  # [slots, SELF | CHAMPION, POLICY_SIZE]: for intervals, if paired: of the
    # config; and of the champion, as it was when the slot got its config
    spread: NDArray[np.float64]  # [slots, SPREAD_SIZE]: how differences of losses vary
    reach: NDArray[np.float64]  # [2]: largest loss; how large losses are of late
    recent: NDArray[np.float64]  # [groups]: sums of the champion's latest losses, each of GROUP events
    fresh: NDArray[np.int64]  # [1]: how many losses these are
    mixing: bool  # single lines are predicted by all slots together
    mix: NDArray[np.float64]  # [slots]: how much each has a say in that; they sum to 1
    scale: NDArray[np.float64]  # [SCALE_SIZE]: range of rewards, and least probability
    last: NDArray[np.float64]  # [slots, SELF | CHAMPION, 2]: importance weight and reward seen last
    settled: NDArray[np.bool_]  # [slots]: not better, and not to become so before it or the champion earns
    tally: NDArray[np.int64]  # [5]: see below
    counts: NDArray[np.int64]  # [keys]: actions with features in each namespace
    sizes: NDArray[np.int64]  # [keys]: these features
    met: NDArray[np.bool_]  # [keys]: met already, or never crossed
    marks: NDArray[np.int64]  # [keys]: scratch of the count


LEARNT, MARK, OUTSIDE, N_EVENTS, N_ACTIONS = range(5)
"""Entries of a tally: events learnt; the last mark; rewards outside [0, 1]; events and actions counted."""

GROUP = 32
"""Events whose mean loss is one observation of whether there is drift."""

SELF, CHAMPION = 0, 1
"""Whose reward an estimator of a slot bounds."""

EVENT, STEP, SIGNAL, SLOT = range(4)
"""Entries of a cursor: the event to go on with and how far it got; why the loop stopped, and who crossed."""

BLOCK_END, NEW_NAMESPACE, REVIEW_DUE, LEASE_DUE, BOUND_CROSSED, LOSS_CROSSED, PROVED_WORSE = range(7)
"""Signals."""

MET, RECOUNTED, REVIEWED, SCHEDULED = 1, 2, 3, 4
"""Steps of an event: its namespaces are counted, and again where a loop does so; the oracle is asked; leases
are looked after."""


STREAM, ASIDE, NOTICED = range(3)
"""What events are to the model: part of its stream; aside, to be predicted only; aside, but their namespaces
are taken note of."""


class Screen(NamedTuple):
    """What each of many interactions seems to gain; see `onlineauto.engine.event.screen_kernels`."""

    interactions: Interactions
    inside: NDArray[np.bool_]  # [n]: the champion has it
    gains: NDArray[np.float64]  # [n]
    seen: NDArray[np.int64]  # [1]: events since the champion is one
    table: NDArray[np.float32]  # [cells, 3]: SUM, COUNT, LARGEST of each feature


class Context(NamedTuple):
    """What the loop works with, the same for many blocks."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    again: Interactions  # those of plausible costs: VW has forgotten some when it comes to them
    scratch: Scratch
    model: Model
    live: Live
    screen: Screen
    pmf: int  # address of the explorer's kernel in this process; 0 if the loop needs none
    buffers: Buffers


class Run(NamedTuple):
    """A model at work on a block."""

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
    ],
    align=True,
)
"""Columns of Outcomes that the loop fills, as a record for each event."""


class Results(NamedTuple):
    """What the loop fills."""

    rows: Records  # [n_events]
    action: NDArray[np.int32]  # [n_actions of all events]
    score: NDArray[np.float32]  # the same
    name: NDArray[np.uint64]  # [n_events]: hash of what names an event, to draw by; empty if none is drawn
    named: NDArray[np.bool_]  # [n_events]


class Buffers(NamedTuple):
    """Working columns that grow with the largest example."""

    cell: NDArray[np.uint32]
    name: NDArray[np.uint64]  # whole hashes, where an explorer asks for them
    value: NDArray[np.float32]
    runs: Records  # [1 + products]: features that are used together
    score: NDArray[np.float32]  # [most actions of an event, slots + 3]: four at a time are scored
    target: NDArray[np.float32]  # [most actions of an event]
    squares: NDArray[np.float32]  # [slots]: Σ x² of the listed action, if the rule asks for it
    first_squares: NDArray[np.float32]  # [most actions of an event]: the same, of whoever asked for it first
    total: NDArray[np.float32]  # [2, slots + 3]: what is the same for every action of an event; that of one
    cost: NDArray[np.float32]  # [most actions of an event]: estimated costs, for online cover
    order: NDArray[np.int32]  # [most actions of an event]: a policy's ranking
    explored: NDArray[np.float32]  # [4, most actions of an event]: room of the explorer
    parted: NDArray[np.int64]  # [1 + products]: products, those that are the same for every action first


class Counted(NamedTuple):
    """Numbers that VW reports of an example."""

    own: int  # own features and the constant
    crossed: int  # features of the champion's interactions


class Actions(NamedTuple):
    """Where the actions of an event are, and what they share: groups [0, n_shared)."""

    first: int  # line of the first action; of all of them under ``--cb N``
    n: int
    n_lines: int  # of the event, the shared one included
    n_shared: int
    room: int  # end of the room for features that the shared line uses
    repeated: int  # shared features that VW counts for each action
    once: int  # and that it counts once


class Label(NamedTuple):
    """What is known of an event: the logged action and its cost, or the label of a single line."""

    action: np.int64  # 0-based, -1 if none
    cost: F32
    probability: F32
    weight: F32  # importance weight
    initial: F32  # initial prediction
