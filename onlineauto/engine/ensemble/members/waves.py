"""Waves: least squares on random waves of numbers and words, which approximate any smooth function.

Each action has a separate regression. If there are too many actions, all share one, of waves of the context
and the action. The terms that several actions have in common are then added up once.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.input_kernels import (
    copy_numbers,
    joins,
    standardise,
    take_feature,
    used_features,
    works,
)
from onlineauto.engine.ensemble.least_squares_kernels import Prepared, Regression
from onlineauto.engine.ensemble.member import ClassKernels, ClassMember, Kernels, Lesson, Needs, Part, Work
from onlineauto.engine.ensemble.regression import WaveMember, price_of_waves
from onlineauto.engine.ensemble.regression_kernels import KEEPS, score_classes, score_of
from onlineauto.engine.ensemble.wave_kernels import (
    WAVES,
    WAVY_SPREAD,
    Basis,
    add_wave,
    begin_of,
    make_waves,
)
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.engine.records.ensemble import MOST_FEATURES, MOST_NUMBERS, InputKind, Known
from onlineauto.jit import call_at, entry_kernel, inline_kernel, short_loop
from onlineauto.state.schema import nested, record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.ensemble.branches import Branch
    from onlineauto.engine.ensemble.class_kernels import Classes, ClassEvent
    from onlineauto.engine.records.ensemble import Inputs, Taken
    from onlineauto.engine.records.loop import Actions, Context, LoopRun
    from onlineauto.features.records import Stream


@record
class WavesState(NamedTuple):
    """State of the member."""

    basis: Basis
    regression: Regression = nested(Regression)


class WavesScratch(NamedTuple):
    """Scratch of the member."""

    sums: NDArray[np.float32]  # [WAVES]: the angles, before scaling, of which waves are the cosines
    waves: NDArray[np.float32]  # [WAVES]
    raw: NDArray[np.float64]  # [numbers]: the numbers of an action


@inline_kernel
def _scale_of(inputs: Inputs, words: int) -> float:
    """Return the factor that turns sums over numbers and `words` words into angles."""
    return math.sqrt(2.0 / max(inputs.tally[Known.NUMBERS] + words, 1))


@inline_kernel
def _add_numbers(inputs: Inputs, scratch: Taken, state: WavesState, sums: NDArray[np.float32]) -> None:
    """Add the numbers of an event to the sums of the waves."""
    for k in range(inputs.tally[Known.NUMBERS]):
        add_wave(state.basis, sums, k * WAVES, scratch.values[inputs.numbers.of_number[k]])


@inline_kernel
def _add_up(inputs: Inputs, scratch: Taken, state: WavesState, sums: NDArray[np.float32]) -> None:
    """Fill the sums of the waves of an event."""
    sums[:] = 0
    for i in range(scratch.n_words[0]):
        add_wave(state.basis, sums, begin_of(scratch.words[i]), 1.0)
    _add_numbers(inputs, scratch, state, sums)


@inline_kernel
def _take_waves(inputs: Inputs, buffers: Taken, state: WavesState, scratch: WavesScratch) -> None:
    """Fill the waves of an event from its sums."""
    copy_numbers(scratch.sums, scratch.waves, WAVES)
    make_waves(state.basis, scratch.waves, _scale_of(inputs, buffers.n_words[0]))


@inline_kernel
def _add_action(run: LoopRun, line: int, words: int, state: WavesState, scratch: WavesScratch) -> int:
    """Add the terms of an action's line to the sums, in the row of the waves; return the number of words.

    `words` is the number of words without those of the line.
    """
    inputs, stream, raw = run.live.ensemble.members.inputs, run.stream, scratch.raw
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            _, number, before = take_feature(inputs, feature, value, raw)
            if number >= 0:
                change = standardise(inputs, number, raw[number]) - standardise(inputs, number, before)
                add_wave(state.basis, scratch.waves, number * WAVES, change)
            elif number == InputKind.WORD and value == 1.0 and words < MOST_FEATURES:
                add_wave(state.basis, scratch.waves, begin_of(feature), 1.0)
                words += 1
    return words


@entry_kernel
def score_waves(
    context: Context, stream: Stream, actions: Actions, part: Part, state: WavesState, scratch: WavesScratch
) -> None:
    """Score the actions of an event."""
    run, scores, known = run_on(context, stream), context.buffers.score, context.buffers.members.known
    inputs, taken = run.live.ensemble.members.inputs, context.buffers.members.taken
    joined, numbers = joins(inputs), inputs.tally[Known.NUMBERS]
    _add_up(inputs, taken, state, scratch.sums)
    if joined and inputs.seen[0] == 0:
        return
    if not joined:
        _take_waves(inputs, taken, state, scratch)
    for action in range(part.begin, part.end):
        short_loop()
        if joined:
            copy_numbers(scratch.sums, scratch.waves, WAVES)
            copy_numbers(taken.raw, scratch.raw, numbers)
            words = _add_action(run, line_of(run, actions, action), taken.n_words[0], state, scratch)
            make_waves(state.basis, scratch.waves, _scale_of(inputs, words))
            scores[action, part.column] = score_of(state.regression, 0, scratch.waves, WAVES)
        elif known[action] >= 0:
            scores[action, part.column] = score_of(state.regression, known[action], scratch.waves, WAVES)


@entry_kernel
def learn_waves(
    context: Context,
    stream: Stream,
    actions: Actions,
    lesson: Lesson,
    state: WavesState,
    scratch: WavesScratch,
) -> None:
    """Learn an event."""
    members = context.live.ensemble.members
    if lesson.known < 0 or not works(members, lesson.score):
        return
    if lesson.again:
        _add_up(members.inputs, context.buffers.members.taken, state, scratch.sums)
        _take_waves(members.inputs, context.buffers.members.taken, state, scratch)
    n_seen = members.inputs.seen[lesson.known]
    call_at(
        context.units.learn_regression, (state.regression, lesson, scratch.waves, n_seen, WAVY_SPREAD, KEEPS)
    )


@entry_kernel
def grow_waves(context: Context, state: WavesState) -> None:
    """Prepare for new actions."""
    inputs = context.live.ensemble.members.inputs
    call_at(context.units.grow_regression, (state.regression, inputs, WAVES))


@entry_kernel
def score_classes_by_waves(
    classes: Classes, event: ClassEvent, first: int, k: int, state: WavesState, scratch: WavesScratch
) -> None:
    """Score the classes of an event; without numbers, all scores are 0."""
    scratch.waves[:] = 0
    if classes.inputs.tally[Known.NUMBERS] > 0:
        _add_numbers(classes.inputs, event.taken, state, scratch.waves)
        make_waves(state.basis, scratch.waves, _scale_of(classes.inputs, 0))
    score_classes(state.regression, scratch.waves, event.score, first, k)


@entry_kernel
def learn_classes_by_waves(
    classes: Classes, event: ClassEvent, lesson: Lesson, k: int, state: WavesState, scratch: WavesScratch
) -> None:
    """Learn an event's class."""
    if classes.inputs.tally[Known.NUMBERS] > 0:
        state.regression.prepared[Prepared.INPUTS], state.regression.prepared[Prepared.OUTPUTS] = WAVES, k
        n_seen = classes.inputs.seen[-1]
        call_at(
            event.units.learn_regression, (state.regression, lesson, scratch.waves, n_seen, WAVY_SPREAD, 1.0)
        )


class Waves(WaveMember, ClassMember):
    """Least squares on waves of numbers and words."""

    name = "waves"
    class_scores = MappingProxyType({"waves": 0.0, "log of waves": 0.0})
    class_kernels = ClassKernels(score_classes_by_waves, learn_classes_by_waves)
    record = WavesState
    needs = (Needs(numbers=True, inputs=True),)

    def kernels(self) -> Kernels:
        """Return the member's kernels."""
        return Kernels(score_waves, learn_waves, grow_waves)

    def make_scratch(self) -> WavesScratch:
        """Return scratch for the waves of an event."""
        return WavesScratch(np.zeros(WAVES, np.float32), np.zeros(WAVES, np.float32), np.zeros(MOST_NUMBERS))

    def prices(self, work: Work) -> tuple[float]:
        """Return the work of the regressions and of the waves."""
        return (price_of_waves(work) + (work.n_actions if work.joined else 1.0) * WAVES,)

    def order(self, branch: Branch) -> NDArray[np.int64]:
        """Return the merged index of each number."""
        return branch.numbers


MEMBER = Waves()
