"""Members: learners of the context, for each action, whose scores the stack uses beside the live configs'.

One is least squares on the features themselves, and on bins of those that are numbers: features that ever had
a value other than 1. The other is least squares on waves, cos(ω·x + φ) with random ω, of the numbers and of
words: enough of them approximate any smooth function of the numbers, as a Gaussian kernel does. Numbers are
standardised by their mean and variance so far; one that an event does not have is 0. Beside these two there
are members that cross features (`cross_kernels`), and a layer upon the first one (`layer_kernels`).

Each action has regressions of its own, by the features on its line, all together. If there are more actions
than that, all share one, whose inputs are those of the context and of the action. A member has no score while
there are more features than it can have, or nothing for it in the events.

Source: Rahimi and Recht, *Random features for large-scale kernel machines*, 2007.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.event.state import (
    ACTIONS,
    FEATURES,
    MEMBERS,
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_NUMBERS,
    NUMBERS,
    WAITING,
    WAVES,
    WORD,
)
from onlineauto.engine.stack.action_key_kernels import action_key, index_of
from onlineauto.engine.stack.cross_kernels import learn_crosses, score_crosses
from onlineauto.engine.stack.layer_kernels import forget_inputs, has_inputs, measure_scores, take_layer
from onlineauto.engine.stack.least_squares_kernels import Observed, catch_up, cut_off, learn_lately
from onlineauto.engine.stack.member_input_kernels import (
    LAYER,
    LINEAR,
    RAW,
    SHARED,
    SUMS,
    WAVY,
    add_wave,
    all_rest,
    begin_of,
    bin_of,
    context_line,
    copy_numbers,
    is_named,
    joins,
    make_waves,
    place_of,
    scale_of,
    standardised,
    take_inputs,
    works,
)
from onlineauto.engine.stack.number_bin_kernels import LINEAR_SPREAD, add_input, see_numbers
from onlineauto.features.name_kernels import NO_STEM, numbered_name
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Actions, Buffers, Label, Members, Regression, Run

WAVY_SPREAD = 10.0
"""Variance of the weight of a wave before the first event."""

_KEEPS = 0.9995
_ROUND = 64
_ALONE, _OFTEN, EACH = 64, 512, 4
"""Events of a regression that are learnt one by one, before several are learnt together; events of which the
covariance learns each, before it learns one in so many."""
_MIX = np.uint64(0x9E3779B97F4A7C15)
_QUARTER = np.uint64(1) << np.uint64(62)


@kernel
def _meet(members: Members, feature: np.uint64, is_number: bool) -> bool:
    """Note a feature of a learnt event, unless there are too many; return whether it is a new one."""
    tally, place = members.tally, place_of(members, feature)
    new = members.feature[place] == 0
    if new:
        if tally[FEATURES] > MOST_FEATURES - 1:
            tally[FEATURES] = MOST_FEATURES + 1
            return False
        members.feature[place] = feature + np.uint64(1)
        members.input[place] = add_input(members, WORD)
    at = members.input[place]
    if is_number and members.number[at] < 0 and tally[NUMBERS] <= MOST_NUMBERS:
        if tally[NUMBERS] < MOST_NUMBERS:
            members.number[at] = tally[NUMBERS]
            members.of_number[tally[NUMBERS]] = at
        tally[NUMBERS] += 1
    return bool(new)


@kernel
def _meet_name(members: Members, word: np.uint32, seed: np.uint32) -> None:
    """Note which number the name of a new word has, if any, and if there may be one more."""
    stem, amount = numbered_name(word, seed)
    if stem == NO_STEM:
        return
    tally, place = members.tally, place_of(members, stem)
    if members.feature[place] == 0:
        if tally[NUMBERS] >= MOST_NUMBERS or tally[FEATURES] >= MOST_FEATURES:
            return
        members.named[tally[NUMBERS]] = True
        _meet(members, stem, True)
    at = members.input[place_of(members, np.uint64(word))]
    members.names[at], members.amount[at] = members.number[members.input[place]], amount


@kernel
def _clear(regression: Regression, inputs: int) -> None:
    """Let the first regression be as before the first event; it has had so many inputs."""
    regression.weights[0, :inputs] = 0.0
    regression.spread[0, :inputs, :inputs] = 0.0
    regression.late[0, :, :inputs] = 0.0
    regression.n_late[0], regression.scale[0], regression.n_waiting[0] = 0, 1.0, 0


@kernel
def _meet_action(members: Members, key: np.uint64) -> None:
    """Note an action, and prepare its regressions."""
    tally = members.tally
    if tally[ACTIONS] > MOST_ACTIONS or index_of(members, key) >= 0:
        return
    action, inputs = tally[ACTIONS], min(tally[FEATURES], MOST_FEATURES)
    tally[ACTIONS] += 1
    if action == MOST_ACTIONS:
        action = 0
        members.seen[action] = 0
        _clear(members.linear, inputs)
        _clear(members.waves, WAVES)
        _clear(members.layer, WAVES)
        members.measure[:, action] = 0.0
    else:
        members.action[action] = key
    for i in range(inputs):
        members.linear.spread[action, i, i] = LINEAR_SPREAD
    for i in range(WAVES):
        members.waves.spread[action, i, i] = WAVY_SPREAD
        members.layer.spread[action, i, i] = WAVY_SPREAD


@inline_kernel
def score_members(run: Run, actions: Actions, begin: int, end: int, buffers: Buffers) -> None:
    """Fill the members' columns of the scores of the actions [begin, end).

    Where a member has none for an action, that is the champion's. Of these actions the index of each that was
    learnt is noted, -1 of others.
    """
    members, score, inputs = run.live.stack.members, buffers.score, buffers.inputs
    joined, first = joins(members), score.shape[1] - 1 - MEMBERS
    forget_inputs(buffers)
    linear, wavy = works(members, LINEAR), works(members, WAVY)
    if all_rest(members, 0, MEMBERS):
        return
    for action in range(begin, end):
        short_loop()
        for member in range(MEMBERS):
            short_loop()
            score[action, first + member] = score[action, 0]
        index = 0 if joined else index_of(members, action_key(run, actions, action))
        buffers.known[action] = index if index >= 0 and members.seen[index] > 0 else -1
    score_crosses(run, actions, begin, end, buffers)
    if not linear and not wavy and members.tally[NUMBERS] == 0:
        return
    words, n = take_inputs(run, actions, -1, buffers), members.tally[FEATURES]
    if joined:
        if members.seen[0] > 0:
            _score_joint(run, actions, begin, end, words, buffers)
        return
    for action in range(begin, end):
        short_loop()
        index = buffers.known[action]
        if index < 0:
            continue
        if linear:
            score[action, first + LINEAR] = score_of(members.linear, index, inputs[LINEAR], n)
        if wavy:
            score[action, first + WAVY] = score_of(members.waves, index, inputs[WAVY], WAVES)
    if works(members, LAYER):  # All actions have scores by now: one alone is scored only if they are joined.
        take_layer(members, actions.n, buffers)
        for action in range(begin, end):
            short_loop()
            if buffers.known[action] >= 0:
                score[action, first + LAYER] = score_of(
                    members.layer, buffers.known[action], inputs[LAYER], WAVES
                )


@inline_kernel
def _score_joint(run: Run, actions: Actions, begin: int, end: int, words: int, buffers: Buffers) -> None:
    """Fill the members' columns by the regressions that all actions share; `words` is those of the context.

    The inputs have the context alone, and what an action adds to them is added to the scores of that.
    """
    members, score, inputs = run.live.stack.members, buffers.score, buffers.inputs
    linear, wavy = works(members, LINEAR), works(members, WAVY)
    first, numbers = score.shape[1] - 1 - MEMBERS, min(members.tally[NUMBERS], MOST_NUMBERS)
    shared = score_of(members.linear, 0, inputs[LINEAR], members.tally[FEATURES]) if linear else 0.0
    copy_numbers(inputs[RAW], inputs[SHARED], numbers)
    for action in range(begin, end):
        short_loop()
        copy_numbers(inputs[SUMS], inputs[WAVY], WAVES)
        own, more = _add_action(run, line_of(run, actions, action), words, buffers)
        copy_numbers(inputs[SHARED], inputs[RAW], numbers)
        if linear:
            score[action, first + LINEAR] = shared + own
        if wavy:
            make_waves(members, inputs[WAVY], scale_of(members, more))
            score[action, first + WAVY] = score_of(members.waves, 0, inputs[WAVY], WAVES)


@inline_kernel
def _add_action(run: Run, line: int, words: int, buffers: Buffers) -> tuple[float, int]:
    """Return what the line of an action adds to the linear score, and how many words there are with its own.

    What it adds to the sums of the waves is added to the row of the waves.
    """
    members, stream, waves, raw = (
        run.live.stack.members,
        run.stream,
        buffers.inputs[WAVY],
        buffers.inputs[RAW],
    )
    weights, wavy, added = members.linear.weights[0], works(members, WAVY), 0.0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            place, number = place_of(members, np.uint64(feature)), WORD
            if members.feature[place] != 0:
                at = members.input[place]
                number = members.number[at]
                if number < 0:
                    added += weights[at] * value
                if is_named(members, at, value):
                    number, value = members.names[at], members.amount[at]
                    at = members.of_number[number]
                if number >= 0:
                    before, raw[number] = raw[number], raw[number] + value
                    away = standardised(members, number, raw[number]) - standardised(members, number, before)
                    added += weights[at] * away
                    if members.bins[number] > 0:
                        added += weights[members.of_bin[number, bin_of(members, number, raw[number])]]
                        added -= weights[members.of_bin[number, bin_of(members, number, before)]]
                    if wavy:
                        add_wave(members, waves, number * WAVES, away)
            if number == WORD and value == 1.0 and words < MOST_FEATURES:
                if wavy:
                    add_wave(members, waves, begin_of(feature), 1.0)
                words += 1
    return added, words


@inline_kernel
def _meet_line(run: Run, line: int) -> None:
    """Note the features of a line."""
    members, stream = run.live.stack.members, run.stream
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if run.layout.ignore[run.layout.key[stream.spans[span].namespace]]:
            continue
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            short_loop()
            value = stream.features[i].value
            if value != np.float32(0) and math.isfinite(value):
                feature, is_number = stream.features[i].hash, value != np.float32(1)
                if _meet(members, np.uint64(feature), is_number) and not is_number:
                    _meet_name(members, feature, run.layout.seed[stream.spans[span].namespace])


@inline_kernel
def meet_event(run: Run, actions: Actions) -> bool:
    """Note the features of the context, and the actions, of a learnt event.

    Returns whether the inputs that its scores were made of are not those to learn from.
    """
    members, line = run.live.stack.members, context_line(run, actions)
    features, numbers = members.tally[FEATURES], members.tally[NUMBERS]
    if members.tally[FEATURES] == 0:
        members.tally[FEATURES] = 1  # the constant
    if line >= 0:
        _meet_line(run, line)
    for action in range(actions.n):
        short_loop()
        if not joins(members):
            _meet_action(members, action_key(run, actions, action))
        if joins(members):
            _meet_line(run, line_of(run, actions, action))
    new = features != members.tally[FEATURES] or numbers != members.tally[NUMBERS]
    return bool(new or joins(members))


@kernel
def score_of(regression: Regression, action: int, inputs: NDArray[np.float64], n: int) -> float:
    """Return the prediction of a regression for an action; four sums are added in parallel."""
    a, b, c, d, weights = 0.0, 0.0, 0.0, 0.0, regression.weights[action]
    for i in range(0, n - 3, 4):
        a += weights[i] * inputs[i]
        b += weights[i + 1] * inputs[i + 1]
        c += weights[i + 2] * inputs[i + 2]
        d += weights[i + 3] * inputs[i + 3]
    for i in range(n - n % 4, n):
        a += weights[i] * inputs[i]
    total: float = (a + b) + (c + d)
    return total


@inline_kernel
def _is_taken(seen: int) -> bool:
    """Return whether the covariance takes the event of this number: one in `EACH`, at no fixed pace.

    Events often come in turn, such as hours, and each kind of them has to have its share.
    """
    return bool(np.uint64(seen) * _MIX < _QUARTER)


@kernel
def _learn(
    members: Members, member: int, action: int, inputs: NDArray[np.float64], cost: float, weight: float
) -> None:
    """Let a member learn the cost of the logged action of an event."""
    n = members.tally[FEATURES] if member == LINEAR else WAVES
    regression = members.linear if member == LINEAR else members.waves
    if member == LAYER:
        regression = members.layer
    noise = 1.0 / weight
    times, seen = 1, members.seen[action]
    if seen > _OFTEN:
        times = EACH if _is_taken(seen) else 0
    observed, together = Observed(cost, noise, _KEEPS, times), WAITING if seen > _ALONE else 1
    learn_lately(regression, action, inputs[:n], members.gains, observed, together)
    if members.seen[action] % _ROUND == 0:
        catch_up(regression, action, n)
        most = LINEAR_SPREAD if member == LINEAR else WAVY_SPREAD
        cut_off(regression.spread[action], n, most, members.gains[0])


@inline_kernel
def learn_members(run: Run, actions: Actions, label: Label, cost: float, buffers: Buffers) -> None:
    """Let the members learn an event, the context of which is in the inputs as it was predicted.

    `cost` is the label's, if it is not far off.
    """
    members = run.live.stack.members
    action = max(int(label.action), 0)
    if all_rest(members, 0, MEMBERS):
        return
    if meet_event(run, actions):
        take_inputs(run, actions, action if joins(members) else -1, buffers)
    index = 0 if joins(members) else index_of(members, action_key(run, actions, action))
    if index >= 0:
        members.seen[index] += 1
        for member in (LINEAR, WAVY, LAYER):
            if works(members, member) and (member != LAYER or has_inputs(buffers)):
                _learn(members, member, index, buffers.inputs[member], cost, np.float64(label.weight))
    learn_crosses(run, actions, action, index, cost, np.float64(label.weight), buffers)
    see_numbers(members, buffers.inputs[RAW])
    if has_inputs(buffers):
        measure_scores(members, actions.n, buffers)
