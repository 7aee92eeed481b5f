"""What the loop works on: the records that its kernels pass around."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Interactions, Layout, Records, Scratch, Stream
    from onlineauto.jit import F32
    from onlineauto.learners._kernels import Rule

__all__ = [
    "CB",
    "CB_ADF",
    "ROW",
    "SIMPLE",
    "Actions",
    "Buffers",
    "Example",
    "Label",
    "Model",
    "Results",
    "Run",
    "Task",
]

SIMPLE, CB_ADF, CB = 0, 1, 2
"""Shapes of events: one label a line; one action a line; all actions on one line."""


class Task(NamedTuple):
    """What to do with an event."""

    shape: int
    cb_type: int
    n_actions: int  # of ``--cb N``
    action_bits: int  # low bits of a hash that hold the action number, ``--cb N``
    explore: bool
    epsilon: F32
    first_only: bool
    clip_p: F32
    link: int
    binary: bool
    training: bool
    exact: bool
    mask: np.uint64  # low bits of a hash that are the cell


class Model(NamedTuple):
    """Everything that learning changes."""

    weights: NDArray[np.float32]  # [cells, 4, lanes]
    shared: NDArray[np.float64]  # [8], see onlineauto.learners._kernels
    lanes: NDArray[np.float64]  # [lanes, 2]: Σ weight · Σ (x/n)², Σ weight
    sums: NDArray[np.int64]  # [2]: actions and events that mtr has averaged over


class Run(NamedTuple):
    """A model at work on a block."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    scratch: Scratch
    stream: Stream
    model: Model


ROW = np.dtype(
    [
        ("n_features", np.int64),
        ("shown_features", np.int64),
        ("known_action", np.int64),
        ("action_start", np.int64),
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


class Buffers(NamedTuple):
    """Working columns that grow with the largest example."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    score: NDArray[np.float32]  # [most actions of an event]
    target: NDArray[np.float32]  # the same


class Example(NamedTuple):
    """The listed features of one example."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    n: int
    n_own: int  # own features and the constant, as VW counts them
    n_crossed: int
    squares: F32


class Actions(NamedTuple):
    """Where the actions of an event are, and what they share: groups [0, n_shared)."""

    first: int  # line of the first action; of all of them under ``--cb N``
    n: int
    n_lines: int  # of the event, the shared one included
    n_shared: int
    used: int  # features of the scratch in use
    repeated: int  # shared features that VW counts for each action
    once: int  # and that it counts once


class Label(NamedTuple):
    """What is known of an event: the logged action and its cost, or the label of a single line."""

    action: np.int64  # 0-based, -1 if none
    cost: F32
    probability: F32
    weight: F32  # importance weight
    initial: F32  # initial prediction
