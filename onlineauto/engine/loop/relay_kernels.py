"""The relay between two threads that share the loop: one runs the live configs, the other the ensemble.

The live configs depend on nothing that the ensemble computes. So their thread can be several events ahead. Of
each event it hands over what the ensemble reads: the scores, and the statistics of the search as they are
before the event is tested. The ensemble's thread has separate arrays for these, which `take_over` fills. So
it computes the same numbers, to the bit, as a single thread.

The live configs stop when a decision is due on them. The ensemble then catches up before the decision is
made. If the ensemble stops for a decision of its own, the live configs may have learnt later events; that
decision does not concern them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.records.loop import Actions, Label
from onlineauto.engine.records.search import PLACES, Tally
from onlineauto.estimators.draw_kernels import DRAWS_SIZE
from onlineauto.estimators.scale_kernels import HIGH, LOW, SCALE_SIZE
from onlineauto.jit import inline_kernel, load_acquired, short_loop, store_released
from onlineauto.learners._kernels import MAX_LABEL, MIN_LABEL

if TYPE_CHECKING:
    from onlineauto.engine.records.loop import Buffers, LoopRun, Relay


class Progress(IntEnum):
    """Entries of `Relay.progress`, each in a separate cache line."""

    HANDED = 0  # number of events handed over
    TAKEN = 8  # number of events taken over
    ENDED = 16  # whether the ensemble has stopped for a decision


PROGRESS_SIZE = 24


class WholeNumber(IntEnum):
    """Entries of `Relay.whole`."""

    FIRST = 0  # the fields of `Actions`
    N = 1
    N_LINES = 2
    N_SHARED = 3
    ROOM = 4
    REPEATED = 5
    ONCE = 6
    ACTION = 7  # of the label
    LEARNS = 8
    LEARNT = 9  # number of events learnt before
    STOPS = 10  # whether the test of the live configs stops the loop after this event


class RealNumber(IntEnum):
    """Entries of `Relay.real`."""

    COST = 0  # the fields of `Label` but the first
    PROBABILITY = 1
    WEIGHT = 2
    INITIAL = 3
    MIN_LABEL = 4  # of the labels learnt, this event's included
    MAX_LABEL = 5
    LOGGED = 6  # number of events that logged the same action, and of all events
    LOGGED_ALL = 7
    LOW = 8  # range of rewards, this event's included
    HIGH = 9
    SCALE = 10  # `LiveStatistics.scale`, then `LiveStatistics.draws`


DRAWS_BEGIN = int(RealNumber.SCALE) + SCALE_SIZE
REAL_SIZE = DRAWS_BEGIN + DRAWS_SIZE


@inline_kernel
def has_ended(relay: Relay) -> bool:
    """Return whether the ensemble has stopped for a decision."""
    return bool(load_acquired(relay.progress, Progress.ENDED) != 0)


@inline_kernel
def is_full(relay: Relay, event: int) -> bool:
    """Return whether the ring has no entry for an event."""
    return bool(event - load_acquired(relay.progress, Progress.TAKEN) >= len(relay.whole))


@inline_kernel
def is_handed(relay: Relay, event: int) -> bool:
    """Return whether an event has been handed over."""
    return bool(event < load_acquired(relay.progress, Progress.HANDED))


@inline_kernel
def _place(label: Label) -> int:
    """Return the index in `LiveStatistics.logged` of the logged action."""
    return min(max(int(label.action), 0), PLACES - 1)


@inline_kernel
def hand_over(
    run: LoopRun, event: int, actions: Actions, label: Label, learns: bool, buffers: Buffers
) -> None:
    """Write an event that the live configs have learnt into the ring, before the event is tested."""
    relay, live, at = buffers.relay, run.live, event % len(buffers.relay.whole)
    whole, real, statistics = relay.whole[at], relay.real[at], live.statistics
    whole[WholeNumber.FIRST], whole[WholeNumber.N] = actions.first, actions.n
    whole[WholeNumber.N_LINES], whole[WholeNumber.N_SHARED] = actions.n_lines, actions.n_shared
    whole[WholeNumber.ROOM], whole[WholeNumber.REPEATED] = actions.room, actions.repeated
    whole[WholeNumber.ONCE], whole[WholeNumber.ACTION] = actions.once, label.action
    whole[WholeNumber.LEARNS], whole[WholeNumber.LEARNT] = learns, live.tally[Tally.LEARNT]
    whole[WholeNumber.STOPS] = 0
    real[RealNumber.COST], real[RealNumber.PROBABILITY] = label.cost, label.probability
    real[RealNumber.WEIGHT], real[RealNumber.INITIAL] = label.weight, label.initial
    shared = run.model.shared
    real[RealNumber.MIN_LABEL], real[RealNumber.MAX_LABEL] = shared[MIN_LABEL], shared[MAX_LABEL]
    real[RealNumber.LOGGED] = statistics.logged[_place(label)]
    real[RealNumber.LOGGED_ALL] = statistics.logged[PLACES]
    for i in range(SCALE_SIZE):
        real[RealNumber.SCALE + i] = statistics.scale[i]
    for i in range(DRAWS_SIZE):
        real[DRAWS_BEGIN + i] = statistics.draws[i]
    for action in range(actions.n):
        short_loop()
        for slot in range(live.n):
            short_loop()
            relay.score[at, action, slot] = buffers.score[action, slot]
    for slot in range(live.n if live.mixing else 0):
        short_loop()
        relay.mix[at, slot] = live.mix[slot]


@inline_kernel
def pass_on(run: LoopRun, event: int, stops: bool, relay: Relay) -> None:
    """Let the ensemble's thread take an event, after it was tested."""
    at, scale = event % len(relay.whole), run.live.statistics.scale
    relay.whole[at, WholeNumber.STOPS] = stops
    relay.real[at, RealNumber.LOW], relay.real[at, RealNumber.HIGH] = scale[LOW], scale[HIGH]
    store_released(relay.progress, Progress.HANDED, event + 1)


@inline_kernel
def take_over(run: LoopRun, event: int, buffers: Buffers) -> tuple[Actions, Label, bool]:
    """Return an event from the ring, and whether it is learnt; fill the scores and the statistics."""
    relay, live, at = buffers.relay, run.live, event % len(buffers.relay.whole)
    whole, real, statistics = relay.whole[at], relay.real[at], live.statistics
    actions = Actions(
        whole[WholeNumber.FIRST],
        whole[WholeNumber.N],
        whole[WholeNumber.N_LINES],
        whole[WholeNumber.N_SHARED],
        whole[WholeNumber.ROOM],
        whole[WholeNumber.REPEATED],
        whole[WholeNumber.ONCE],
    )
    label = Label(
        whole[WholeNumber.ACTION],
        np.float32(real[RealNumber.COST]),
        np.float32(real[RealNumber.PROBABILITY]),
        np.float32(real[RealNumber.WEIGHT]),
        np.float32(real[RealNumber.INITIAL]),
    )
    shared = run.model.shared
    live.tally[Tally.LEARNT] = whole[WholeNumber.LEARNT]
    shared[MIN_LABEL], shared[MAX_LABEL] = real[RealNumber.MIN_LABEL], real[RealNumber.MAX_LABEL]
    statistics.logged[_place(label)] = real[RealNumber.LOGGED]
    statistics.logged[PLACES] = real[RealNumber.LOGGED_ALL]
    for i in range(SCALE_SIZE):
        statistics.scale[i] = real[RealNumber.SCALE + i]
    for i in range(DRAWS_SIZE):
        statistics.draws[i] = real[DRAWS_BEGIN + i]
    for action in range(actions.n):
        short_loop()
        for slot in range(live.n):
            short_loop()
            buffers.score[action, slot] = relay.score[at, action, slot]
    for slot in range(live.n if live.mixing else 0):
        short_loop()
        live.mix[slot] = relay.mix[at, slot]
    return actions, label, whole[WholeNumber.LEARNS] != 0


@inline_kernel
def stops_after(relay: Relay, event: int) -> bool:
    """Return whether the test of the live configs has stopped the loop after an event."""
    return bool(relay.whole[event % len(relay.whole), WholeNumber.STOPS] != 0)
