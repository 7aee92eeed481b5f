"""Inputs of the members: the known features, numbers and actions, and the inputs of an event.

An event is processed in three steps. Its inputs are collected before it is scored. New features are
registered before it is learnt. Its numbers update means and bins after that (`number_bin_kernels`). Numbers
are features that ever had a value other than 1, and numbers in the names of words. They are standardised by
their mean and variance so far; a number that an event does not have is 0.

An event with more new features or numbers than the remaining capacity is not registered, so that one wide
event cannot exhaust it. Once such events are more than a few, and one in eight, the first of their features
and numbers take the rest of the capacity. Features beyond it wait to replace inputs (`renewal_kernels`).

Each action has an index and its own regression. An event with more new actions than the remaining capacity
registers none of them. Once such events are lately more than a few, and one in eight, actions are joined: all
have the index 0, and their inputs are those of the context and of the action.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.ensemble.least_squares_kernels import leave_out
from onlineauto.engine.ensemble.member import Need
from onlineauto.engine.ensemble.renewal_kernels import count_use, is_counted
from onlineauto.engine.ensemble.vector_kernels import (
    PROJECTION,
    is_block,
    make_basis,
    projection_of,
    register_vectors,
    take_vectors,
    variance_of,
)
from onlineauto.engine.event.example_kernels import line_of
from onlineauto.engine.records.ensemble import (
    MOST_ACTIONS,
    MOST_FEATURES,
    MOST_NUMBERS,
    PROJECTED,
    InputKind,
    InVectors,
    Known,
    WideCount,
)
from onlineauto.engine.records.task import Shape
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.hash_kernels import NO_STEM, split_number
from onlineauto.features.table_kernels import slot_of_key
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble, Inputs, Members
    from onlineauto.engine.records.loop import Actions, Buffers, LoopRun


_GOLDEN = np.uint64(GOLDEN)
_FAR = 4.0
_LARGEST = float(np.finfo(np.float32).max)
_RARE, _SHARE = 16, 8
"""Wide events are the rule if they are more than `_RARE`, and more than one event in `_SHARE`."""
_WHOLE = 2.0**52
_SHIFT = np.uint64(29)


@inline_kernel
def joins(inputs: Inputs) -> bool:
    """Return whether one regression covers all actions, by their features too, as there are too many."""
    return bool(inputs.tally[Known.ACTIONS] > MOST_ACTIONS)


@inline_kernel
def slot_of(inputs: Inputs, feature: np.uint64) -> int:
    """Return the table index of a feature, or of a stem: where it is, or where it would be inserted."""
    return slot_of_key(inputs.feature, feature + np.uint64(1))


@inline_kernel
def is_named(inputs: Inputs, at: int, value: float) -> bool:
    """Return whether an input is a word whose name has a number, so that it counts as that number too."""
    return bool(inputs.names[at] >= 0 and inputs.number[at] == InputKind.WORD and value == 1.0)


@inline_kernel
def context_line(run: LoopRun, actions: Actions) -> int:
    """Return the line that all actions share, -1 if there is none."""
    if run.task.shape in (Shape.SIMPLE, Shape.CB):
        return actions.first
    return actions.first - 1 if actions.n_lines > actions.n else -1


@inline_kernel
def used_features(run: LoopRun, span: int) -> tuple[int, int]:
    """Return the begin and the end of the single features of a namespace in a line.

    Ignored namespaces and long vectors have none.
    """
    begin, end = features_of(run, span)
    return begin, begin if is_block(run.stream, span) else end


@inline_kernel
def features_of(run: LoopRun, span: int) -> tuple[int, int]:
    """Return the begin and the end of the features of a namespace in a line; ignored ones have none.

    Bins of a number of a single line have none either, because members make their own bins.
    """
    spans, key = run.stream.spans, run.layout.key[run.stream.spans[span].namespace]
    ignored = run.layout.ignore[key] or (run.task.shape == Shape.SIMPLE and run.layout.bins[key])
    return spans[span].start, spans[span].start if ignored else spans[span + 1].start


@inline_kernel
def number_of_projection(inputs: Inputs, direction: int) -> int:
    """Return the index of a projection of vectors among the numbers, -1 if it is none of them."""
    slot = slot_of(inputs, np.uint64(PROJECTION + direction))
    return int(inputs.number[inputs.input[slot]]) if inputs.feature[slot] != 0 else -1


@inline_kernel
def bin_of(inputs: Inputs, number: int, value: float) -> int:
    """Return the bin of a value."""
    result = 0
    while result < inputs.numbers.bins[number] - 1 and value > inputs.numbers.cut[number, result]:
        result += 1
    return result


@inline_kernel
def copy_numbers(source: NDArray[Any], target: NDArray[Any], n: int) -> None:
    """Copy the first `n` numbers."""
    for i in range(n):
        target[i] = source[i]


@inline_kernel
def deviations(value: float, mean: float, variance: float) -> float:
    """Return the distance of a value from a mean in standard deviations, clipped."""
    spread = math.sqrt(variance)
    distance = (value - mean) / spread if spread > 0.0 else 0.0
    return min(max(distance, -_FAR), _FAR)


@inline_kernel
def standardise(inputs: Inputs, number: int, value: float) -> float:
    """Return the distance of a number's value from its mean in standard deviations, clipped."""
    return deviations(value, inputs.numbers.mean[number], inputs.numbers.variance[number])


@inline_kernel
def _take_line(run: LoopRun, line: int, words: int, buffers: Buffers) -> int:
    """Add a line to the inputs, after the first `words` words; return the new number of words."""
    known, stream, taken = run.live.ensemble.members.inputs, run.stream, buffers.members.taken
    values = taken.values
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            feature, value = stream.features[i].hash, np.float64(stream.features[i].value)
            if not math.isfinite(value):
                continue
            slot, number = slot_of(known, np.uint64(feature)), InputKind.WORD
            if known.feature[slot] != 0:
                at = known.input[slot]
                values[at] += value
                number = known.number[at]
                if is_named(known, at, value):
                    number = known.names[at]
                    values[known.numbers.of_number[number]] += known.amount[at]
            if number == InputKind.WORD and value == 1.0 and words < MOST_FEATURES:
                taken.words[words] = feature
                words += 1
    return words


@inline_kernel
def take_inputs(run: LoopRun, actions: Actions, action: int, buffers: Buffers) -> None:
    """Fill the inputs of an event from its context, and from `action` unless it is -1."""
    known, taken, line = run.live.ensemble.members.inputs, buffers.members.taken, context_line(run, actions)
    values, numbers = taken.values, known.numbers
    n = known.tally[Known.FEATURES]
    values[:n] = 0.0
    words = _take_line(run, line, 0, buffers) if line >= 0 else 0
    if action >= 0:
        words = _take_line(run, line_of(run, actions, action), words, buffers)
    taken.n_words[0] = words
    if n > 0:
        values[0] = 1.0
    take_vectors(known.vectors, run.stream, line, taken)
    for direction in range(known.vectors.vectors[InVectors.PROJECTED]):
        short_loop()
        number = number_of_projection(known, direction)
        if number >= 0:
            values[numbers.of_number[number]] = projection_of(known.vectors, taken, direction)
    for k in range(known.tally[Known.NUMBERS]):
        short_loop()
        at = numbers.of_number[k]
        raw = min(max(np.float64(values[at]), -_LARGEST), _LARGEST)  # a repeated feature may exceed float32
        taken.raw[k] = raw
        if numbers.bins[k] > 0:
            values[numbers.of_bin[k, bin_of(known, k, raw)]] = 1
        values[at] = standardise(known, k, raw)


@inline_kernel
def take_feature(
    inputs: Inputs, feature: np.uint32, value: float, raw: NDArray[np.float64]
) -> tuple[int, int, float]:
    """Add a feature of an action to the numbers `raw`, if it is a number or its name has one.

    Returns three values: the feature's input, -1 for numbers and unknown features; the index of the number,
    or `InputKind.WORD` if it is none; and the previous value of that number.
    """
    slot, own, number, before = slot_of(inputs, np.uint64(feature)), -1, InputKind.WORD, 0.0
    if inputs.feature[slot] != 0:
        at = inputs.input[slot]
        number = inputs.number[at]
        if number < 0:
            own = at
        if is_named(inputs, at, value):
            number, value = inputs.names[at], inputs.amount[at]
        if number >= 0:
            before = raw[number]
            raw[number] = before + value
    return own, number, before


@inline_kernel
def action_key(run: LoopRun, actions: Actions, action: int) -> np.uint64:
    """Return the key that identifies an action: its number, or a hash of all its features."""
    if run.task.shape in (Shape.SIMPLE, Shape.CB):
        return np.uint64(action + 1)
    stream, line = run.stream, line_of(run, actions, action)
    key = np.uint64(1)  # a sum, so that the order of features does not matter
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = features_of(run, span)
        for i in range(begin, end):
            short_loop()
            value = np.float64(stream.features[i].value) * 65536.0
            whole = np.int64(value) if abs(value) < _WHOLE else np.int64(0)  # NaN becomes 0, too
            part = (np.uint64(stream.features[i].hash) ^ (np.uint64(whole) << np.uint64(32))) * _GOLDEN
            key += (part ^ (part >> _SHIFT)) * _GOLDEN
    return key


@inline_kernel
def index_of(inputs: Inputs, key: np.uint64) -> int:
    """Return the index of an action's regression, -1 if the action is not known."""
    if joins(inputs):
        return 0
    for i in range(min(inputs.tally[Known.ACTIONS], MOST_ACTIONS)):
        short_loop()
        if inputs.action[i] == key:
            return i
    return -1


@kernel
def _register_feature(inputs: Inputs, feature: np.uint64, is_number: bool) -> bool:
    """Register a feature of a learnt event, unless there are too many; return whether it is new."""
    tally, slot = inputs.tally, slot_of(inputs, feature)
    new = inputs.feature[slot] == 0
    if new:
        if tally[Known.FEATURES] >= MOST_FEATURES:
            return False
        inputs.feature[slot] = feature + np.uint64(1)
        inputs.input[slot] = add_input(inputs, InputKind.WORD)
    at = inputs.input[slot]
    if is_number and inputs.number[at] < 0 and tally[Known.NUMBERS] < MOST_NUMBERS:
        inputs.number[at] = tally[Known.NUMBERS]
        inputs.numbers.of_number[tally[Known.NUMBERS]] = at
        tally[Known.NUMBERS] += 1
    return bool(new)


@kernel
def _register_name(inputs: Inputs, word: np.uint32, seed: np.uint32) -> None:
    """Register the number in the name of a new word, if it has one and the capacity allows it."""
    stem, amount = split_number(word, seed)
    if stem == NO_STEM:
        return
    tally, slot = inputs.tally, slot_of(inputs, stem)
    if inputs.feature[slot] == 0:
        if tally[Known.NUMBERS] >= MOST_NUMBERS or tally[Known.FEATURES] >= MOST_FEATURES:
            return
        inputs.numbers.named[tally[Known.NUMBERS]] = True
        _register_feature(inputs, stem, True)
    at = inputs.input[slot_of(inputs, np.uint64(word))]
    inputs.names[at], inputs.amount[at] = inputs.number[inputs.input[slot]], amount


@kernel
def _register_action(inputs: Inputs, key: np.uint64) -> None:
    """Register an action, unless there are too many."""
    tally = inputs.tally
    if tally[Known.ACTIONS] > MOST_ACTIONS or index_of(inputs, key) >= 0:
        return
    if tally[Known.ACTIONS] < MOST_ACTIONS:
        inputs.action[tally[Known.ACTIONS]] = key
    tally[Known.ACTIONS] += 1


@inline_kernel
def _register_actions(run: LoopRun, actions: Actions, index: NDArray[np.int64]) -> None:
    """Register the actions of a learnt event, unless its new ones do not fit; join them if events rarely fit.

    Inventories change, so only recent events decide whether to join the actions. `index` has the index of
    each action that was learnt before, and -1 for the others.
    """
    inputs = run.live.ensemble.members.inputs
    known = inputs.tally[Known.ACTIONS]
    for action in range(actions.n):
        short_loop()
        if index[action] < 0:
            _register_action(inputs, action_key(run, actions, action))
    if not joins(inputs):
        inputs.wide[WideCount.CROWDING] = max(inputs.wide[WideCount.CROWDING] - 1, 0)
        return
    inputs.wide[WideCount.ACTIONS] += 1
    inputs.wide[WideCount.CROWDING] += _SHARE - 1
    if inputs.wide[WideCount.CROWDING] > (_SHARE - 1) * _RARE:
        inputs.seen[0] = 0
    else:
        inputs.tally[Known.ACTIONS] = known


@kernel
def _note_line(run: LoopRun, line: int, counts: bool) -> None:
    """Register the features of a line, or count the uses of each."""
    inputs, stream = run.live.ensemble.members.inputs, run.stream
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            feature, value = stream.features[i].hash, stream.features[i].value
            if value == np.float32(0) or not math.isfinite(value):
                continue
            is_number = value != np.float32(1)
            if counts:
                count_use(inputs, np.uint64(feature))
            elif _register_feature(inputs, np.uint64(feature), is_number) and not is_number:
                _register_name(inputs, feature, run.layout.seed[stream.spans[span].namespace])


@inline_kernel
def _note_event(run: LoopRun, actions: Actions, line: int, counts: bool) -> None:
    """Register the features of the context, and those of joined actions, or count the uses of each."""
    if line >= 0:
        _note_line(run, line, counts)
    for action in range(actions.n if joins(run.live.ensemble.members.inputs) else 0):
        short_loop()
        _note_line(run, line_of(run, actions, action), counts)


@inline_kernel
def is_rule(inputs: Inputs, entry: int) -> bool:
    """Count a learnt event that is too wide; return whether such events are many, and one in eight."""
    inputs.wide[entry] += 1
    return bool(inputs.wide[entry] > _RARE and _SHARE * inputs.wide[entry] > inputs.seen[MOST_ACTIONS])


@kernel
def _count_unknown(run: LoopRun, line: int) -> tuple[int, int]:
    """Return how many features of a line are unknown, and how many are numbers not yet known as such.

    Where the capacity is exhausted there are none.
    """
    inputs, stream, features, numbers = run.live.ensemble.members.inputs, run.stream, 0, 0
    has_room = inputs.tally[Known.FEATURES] < MOST_FEATURES
    has_room_of_numbers = inputs.tally[Known.NUMBERS] < MOST_NUMBERS
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        begin, end = used_features(run, span)
        for i in range(begin, end):
            short_loop()
            value = stream.features[i].value
            is_word = value == np.float32(1)
            if value == np.float32(0) or not math.isfinite(value) or (is_word and not has_room):
                continue
            slot = slot_of(inputs, np.uint64(stream.features[i].hash))
            known = inputs.feature[slot] != 0
            features += has_room and not known
            is_number = has_room_of_numbers and not is_word and (known or has_room)
            numbers += is_number and not (known and inputs.number[inputs.input[slot]] >= 0)
    return features, numbers


@inline_kernel
def _size_of_line(run: LoopRun, line: int) -> int:
    """Return how many features a line has, ignored ones included."""
    stream = run.stream
    first, end = stream.lines[line].start, stream.lines[line + 1].start
    return int(stream.spans[end].start - stream.spans[first].start)


@inline_kernel
def _can_register(run: LoopRun, actions: Actions, line: int) -> bool:
    """Return whether to register an event: it may have new features, and they fit or events rarely fit."""
    inputs, features, numbers = run.live.ensemble.members.inputs, 0, 0
    if not joins(inputs):
        # Most events fit even if all their features are new, which needs no look at the features.
        most = _size_of_line(run, line) if line >= 0 else 0
        fits = inputs.tally[Known.FEATURES] + most <= MOST_FEATURES
        if fits and inputs.tally[Known.NUMBERS] + most <= MOST_NUMBERS:
            return True
    if line >= 0:
        features, numbers = _count_unknown(run, line)
    if joins(inputs):
        for action in range(actions.n):
            short_loop()
            more_features, more_numbers = _count_unknown(run, line_of(run, actions, action))
            features += more_features
            numbers += more_numbers
    if features == 0 and numbers == 0:
        return False
    tally = inputs.tally
    fits = tally[Known.FEATURES] + features <= MOST_FEATURES
    fits = fits and tally[Known.NUMBERS] + numbers <= MOST_NUMBERS
    return fits or is_rule(inputs, WideCount.INPUTS)


@inline_kernel
def register_event(run: LoopRun, actions: Actions, index: NDArray[np.int64]) -> bool:
    """Register the features of the context, and the actions, of a learnt event.

    `index` has the index of each action that was learnt before, and -1 for the others. Returns whether
    features or numbers are new.
    """
    inputs, line = run.live.ensemble.members.inputs, context_line(run, actions)
    features, numbers = inputs.tally[Known.FEATURES], inputs.tally[Known.NUMBERS]
    in_vectors = inputs.vectors.vectors[InVectors.NUMBERS]
    if inputs.tally[Known.FEATURES] == 0:
        inputs.tally[Known.FEATURES] = 1  # the constant
    if not joins(inputs):
        _register_actions(run, actions, index)
    registers = _can_register(run, actions, line)
    if line >= 0:
        register_vectors(inputs.vectors, run.stream, line)
    if registers:
        _note_event(run, actions, line, False)
    if is_counted(inputs):
        _note_event(run, actions, line, True)
    return bool(
        features != inputs.tally[Known.FEATURES]
        or numbers != inputs.tally[Known.NUMBERS]
        or in_vectors != inputs.vectors.vectors[InVectors.NUMBERS]
    )


@inline_kernel
def add_projections(inputs: Inputs) -> None:
    """Compute the projection of vectors, and register its numbers as far as the capacity allows."""
    make_basis(inputs.vectors)
    for direction in range(PROJECTED):
        short_loop()
        if inputs.tally[Known.FEATURES] < MOST_FEATURES and inputs.tally[Known.NUMBERS] < MOST_NUMBERS:
            number = inputs.tally[Known.NUMBERS]
            inputs.numbers.variance[number] = variance_of(inputs.vectors, direction)
            inputs.numbers.named[number] = True  # bins would cost more than they earn
            _register_feature(inputs, np.uint64(PROJECTION + direction), True)


@inline_kernel
def add_input(inputs: Inputs, kind: int) -> int:
    """Add an input of a kind, `InputKind.WORD` or `BIN`; return its index."""
    at = int(inputs.tally[Known.FEATURES])
    inputs.number[at], inputs.divided[at] = kind, 0
    inputs.tally[Known.FEATURES] += 1
    return at


@inline_kernel
def _has_needs(members: Members, score: int) -> bool:
    """Return whether the conditions of a score are true, apart from the score that it is computed from."""
    needs, inputs = members.needs[score], members.inputs
    tally = inputs.tally
    can_work = needs[Need.LEAST_ACTIONS] <= tally[Known.ACTIONS] <= needs[Need.MOST_ACTIONS]
    can_work = can_work and (needs[Need.NUMBERS] == 0 or tally[Known.NUMBERS] > 0 or joins(inputs))
    return bool(
        can_work
        and inputs.seen[MOST_ACTIONS] >= needs[Need.EVENTS]
        and tally[Known.WIDEST] <= needs[Need.WIDTH]
        and (needs[Need.VECTORS] == 0 or inputs.vectors.vectors[InVectors.NUMBERS] > 0)
    )


@inline_kernel
def works(members: Members, score: int) -> bool:
    """Return whether a score is computed: it does not rest, and its conditions are true."""
    upon = members.needs[score, Need.UPON]
    below = upon < 0 or (not members.rests[upon] and _has_needs(members, upon))
    return bool(below and not members.rests[score] and _has_needs(members, score))


@inline_kernel
def all_rest(members: Members, first: int, end: int) -> bool:
    """Return whether all scores from `first` to before `end` rest."""
    rest = True
    for score in range(first, end):
        rest = rest and members.rests[score]
    return rest


@inline_kernel
def constant_of(ensemble: Ensemble) -> int:
    """Return the index of the constant's weight; the weights of levels follow it."""
    return len(ensemble.weights) - ensemble.n_levels - 1


@inline_kernel
def trust_champion(weights: NDArray[np.float64], constant: int) -> None:
    """Give the champion of single lines the weight that the other scores leave of 1."""
    weights[0] = 1.0
    for at in range(1, constant):
        weights[0] -= weights[at]


@kernel
def leave_out_stopped(ensemble: Ensemble, scored: NDArray[np.bool_], initial_variance: float) -> None:
    """Remove the weights of the scores that were computed for this event and are no longer computed."""
    constant = constant_of(ensemble)
    for score in range(len(ensemble.members.rests)):
        short_loop()
        if not scored[score] or works(ensemble.members, score):
            continue
        at = constant - len(ensemble.members.rests) + score
        leave_out(ensemble.weights, ensemble.spread, at, initial_variance, ensemble.scratch[1])
        if ensemble.n_levels > 0:
            leave_out(
                ensemble.weights, ensemble.spread, constant + 1 + at, initial_variance, ensemble.scratch[1]
            )
        else:
            trust_champion(ensemble.weights, constant)
