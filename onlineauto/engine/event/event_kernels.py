"""An event: its actions, the feature groups that they share, its label."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.event.ccb_slot_kernels import open_slot_event
from onlineauto.engine.records.loop import Actions, Label
from onlineauto.engine.records.task import Shape
from onlineauto.explorers.sample_kernels import fnv1a
from onlineauto.features.group_kernels import open_constant, open_line
from onlineauto.features.hash_kernels import murmur3
from onlineauto.jit import entry_kernel, inline_kernel, kernel, short_loop
from onlineauto.learners.gradient_kernels import ORIGIN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import LoopRun
    from onlineauto.features.records import Stream

_ZERO = np.float32(0)
_ONE = np.float32(1)
_FLOAT_MAX = np.float32(np.finfo(np.float32).max)

_SEED = np.frombuffer(b"seed=", np.uint8)


@entry_kernel
def name_events(
    tag: NDArray[np.uint8],
    tag_start: NDArray[np.int64],
    first_line: NDArray[np.int64],
    name: NDArray[np.uint64],
    named: NDArray[np.bool_],
    murmur: bool,
) -> None:
    """Fill `name` (zeros) with the hash of each event's tag, by `murmur` or FNV-1a, and `named` (false)."""
    for event in range(len(name)):
        start, end = tag_start[first_line[event]], tag_start[first_line[event] + 1]
        if end - start <= len(_SEED):
            continue
        named[event] = True
        for i in range(len(_SEED)):
            named[event] = named[event] and tag[start + i] == _SEED[i]
        if named[event]:
            start += len(_SEED)
            if murmur:
                name[event] = murmur3(tag, start, end, np.uint32(0))
            else:
                name[event] = fnv1a(tag, start, end)


@kernel
def _label_of_line(stream: Stream, line: int, n_actions: int) -> Label:
    """Return the label of a ``--cb N`` line: its first observed cost."""
    weight = stream.lines[line].weight
    for i in range(stream.lines[line].cost, stream.lines[line + 1].cost):
        short_loop()
        logged = stream.costs[i]
        if logged.cost != _FLOAT_MAX and logged.probability > _ZERO:
            action = np.int64(logged.action) - np.int64(1)
            if 0 <= action < n_actions:
                return Label(action, logged.cost, logged.probability, weight, _ZERO)
            break
    return Label(np.int64(-1), _FLOAT_MAX, -_ONE, weight, _ZERO)


@inline_kernel
def _label_of_event(stream: Stream, first: int, n: int) -> Label:
    """Return the label of an ADF event: the first line with one cost, regardless of its probability."""
    weight = stream.lines[first].weight if n > 0 else _ONE
    for action in range(n):
        short_loop()
        i = stream.lines[first + action].cost
        if i + 1 == stream.lines[first + action + 1].cost and stream.costs[i].cost != _FLOAT_MAX:
            return Label(np.int64(action), stream.costs[i].cost, stream.costs[i].probability, weight, _ZERO)
    return Label(np.int64(-1), _FLOAT_MAX, -_ONE, weight, _ZERO)


@inline_kernel
def _simple_label(stream: Stream, line: int) -> Label:
    """Return the label of a single line, in the form of the cost of its only action."""
    read = stream.lines[line]
    action = np.int64(0) if read.label != _FLOAT_MAX else np.int64(-1)
    return Label(action, read.label, _ONE, read.weight, read.initial)


@inline_kernel
def _open_event(run: LoopRun, event: int) -> tuple[Actions, Label]:
    """Open the shared groups of an event of any shape; return its actions and its label as logged."""
    stream, layout, scratch = run.stream, run.layout, run.scratch
    if run.task.slots:
        return open_slot_event(run, event)
    first, free = stream.events[event], stream.room
    if run.task.shape == Shape.SIMPLE:
        return Actions(first, 1, 1, 0, free, 0, 0), _simple_label(stream, first)
    if run.task.shape == Shape.CB:
        groups, _, free = open_line(layout, scratch, stream, first, 0, free)
        groups = open_constant(layout, scratch, stream, 0, groups)
        actions = Actions(first, run.task.n_actions, 1, groups, free, 0, 0)
        return actions, _label_of_line(stream, first, run.task.n_actions)
    n = stream.events[event + 1] - first
    if not stream.lines[first].shared:
        return Actions(first, n, n, 0, free, 0, 0), _label_of_event(stream, first, n)
    groups, size, free = open_line(layout, scratch, stream, first, 0, free)
    n_shared_features = size + (1 if layout.constant_key >= 0 else 0)
    return Actions(first + 1, n - 1, n, groups, free, size, n_shared_features), _label_of_event(
        stream, first + 1, n - 1
    )


@inline_kernel
def open_event(run: LoopRun, event: int) -> tuple[Actions, Label]:
    """Open the groups that the actions of an event share; return its actions and its label."""
    actions, label = _open_event(run, event)
    if run.task.shape == Shape.CB_ADF:
        origin = np.float32(run.model.shared[ORIGIN])
        label = Label(label.action, label.cost, label.probability, label.weight, origin)
    if run.task.uniform and label.action >= 0 and label.probability == _ZERO:
        probability = _ONE / np.float32(actions.n)
        label = Label(label.action, label.cost, probability, label.weight, label.initial)
    return actions, label


@inline_kernel
def learns_from(run: LoopRun, label: Label, holdout: bool) -> bool:
    """Return whether the model learns from an event with this label; `holdout` marks a held-out event."""
    if label.action < 0 or (run.task.slots and label.cost == _FLOAT_MAX):
        return False
    return not holdout or (run.task.quirks.learns_held_out and run.task.shape == Shape.CB_ADF)
