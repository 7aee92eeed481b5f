"""What the loop works on: the records that its kernels pass around."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.features._kernels import Columns, Interactions, Layout, Scratch
    from onlineauto.jit import F32
    from onlineauto.learners._kernels import Rule

__all__ = ["CB", "CB_ADF", "SIMPLE", "Actions", "Buffers", "Example", "Label", "Model", "Rows", "Run", "Task"]

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
    lane_norm: NDArray[np.float64]  # [lanes]: Σ weight · Σ (x/n)²
    lane_weight: NDArray[np.float64]  # [lanes]: Σ weight
    sums: NDArray[np.int64]  # [2]: actions and events that mtr has averaged over


class Run(NamedTuple):
    """A model at work on a block."""

    task: Task
    rule: Rule
    layout: Layout
    interactions: Interactions
    scratch: Scratch
    columns: Columns
    model: Model


class Rows(NamedTuple):
    """Columns of Outcomes, to be filled."""

    loss: NDArray[np.float32]
    labelled: NDArray[np.bool_]
    n_features: NDArray[np.int64]
    shown_features: NDArray[np.int64]
    prediction: NDArray[np.float32]
    raw: NDArray[np.float32]
    known_action: NDArray[np.int64]
    known_cost: NDArray[np.float32]
    known_probability: NDArray[np.float32]
    action_start: NDArray[np.int64]
    action: NDArray[np.int32]
    score: NDArray[np.float32]


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
    n_shared: int
    used: int  # features of the scratch columns in use


class Label(NamedTuple):
    """The logged action of an event."""

    action: np.int64  # 0-based, -1 if none
    cost: F32
    probability: F32
