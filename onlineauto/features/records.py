"""Records: the rows that kernels walk, and a Block packed into them.

A kernel that takes forty columns compiles slowly and is called slowly; one that takes a few arrays of records
is not. A Block stays in columns for people; `pack` copies it once per block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

__all__ = [
    "EXTENT",
    "FACTOR",
    "FEATURE",
    "GROUP",
    "RUN",
    "Example",
    "Interactions",
    "Layout",
    "Records",
    "Scratch",
    "Stream",
    "pack",
]

Records: TypeAlias = Any
"""A structured array; Numba reads its fields as attributes, which NumPy's own types do not."""

EVENT = np.dtype([("start", np.int64), ("holdout", np.bool_)], align=True)
"""Record of an event."""
LINE = np.dtype(
    [
        ("start", np.int64),
        ("cost", np.int64),
        ("label", np.float32),
        ("weight", np.float32),
        ("initial", np.float32),
        ("shared", np.bool_),
    ],
    align=True,
)
"""Record of a line."""
COST = np.dtype([("action", np.uint32), ("cost", np.float32), ("probability", np.float32)], align=True)
"""Record of a cost."""
SPAN = np.dtype([("start", np.int64), ("namespace", np.int32)], align=True)
"""Record of a run of features of one namespace."""
FEATURE = np.dtype([("hash", np.uint32), ("value", np.float32)], align=True)
"""Record of a feature."""
GROUP = np.dtype(
    [("start", np.int64), ("end", np.int64), ("key", np.int32), ("squares", np.float32)], align=True
)
"""Record of a namespace of an example."""
FACTOR = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("position", np.int64),
        ("choice", np.int64),
        ("chain", np.uint64),
        ("product", np.float32),
        ("repeats", np.bool_),
    ],
    align=True,
)
"""Record of a factor of a product."""
EXTENT = np.dtype([("start", np.int64), ("end", np.int64), ("name", np.int32)], align=True)
"""Record of a run of features of one full name."""


RUN = np.dtype([("start", np.int64), ("end", np.int64), ("product", np.int64)], align=True)
"""Record of listed features that are used together: of no product (0), or of one (1 + its number)."""


class Stream(NamedTuple):
    """A packed Block; where a record has a ``start``, one more record ends the last one."""

    events: Records  # start: first line; holdout: predicted and not learnt
    lines: Records  # start: first span; cost: first cost; label, weight, initial, shared
    costs: Records  # action, cost, probability
    spans: Records  # start: first feature; namespace
    features: Records  # hash, value


class Layout(NamedTuple):
    """How namespaces become groups, the same for all events of a block."""

    key: NDArray[np.int32]  # [n_namespaces]: group key of each namespace
    ignore: NDArray[np.bool_]  # [n_keys]: dropped altogether
    ignore_linear: NDArray[np.bool_]  # [n_keys]: kept for interactions only
    constant_key: int  # group key of the constant; -1: no constant


class Interactions(NamedTuple):
    """Products, in the order they are summed: of groups first, then of extents."""

    start: NDArray[np.int64]  # [n + 1]: first factor of each product
    factor: NDArray[np.int32]  # group key, or namespace number in a product of extents
    n_group: int  # so many are products of groups
    permutations: bool
    n_slots: int
    holders: NDArray[np.bool_]  # [1 + n, slots + 3]: who uses the linear features (all), and each product


class Scratch(NamedTuple):
    """Working records of one example, reused for every one."""

    features: Records  # hash, value; the first is the constant
    groups: Records  # start, end: features; key; squares: Σ x²
    where: NDArray[np.int32]  # [n_keys]: group of each key, -1 if absent
    factors: Records  # of the product at hand: start, end: features; repeats: those of the factor before
    extents: Records  # start, end: features; name; ends with the name -1


class Example(NamedTuple):
    """The listed features of one example, for all live slots together."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    runs: Records  # start, end: places in the list; product
    n_runs: int
    holders: NDArray[np.bool_]  # [1 + products, slots]: who uses a run


def pack(block: Block, holdout: NDArray[np.bool_]) -> Stream:
    """Copy a block's columns into records.

    Parameters
    ----------
    block : Block
        Events.
    holdout : bool[n_events]
        Events to predict and not to learn.
    """
    n_lines = block.n_lines
    events = np.zeros(len(block.event_start), EVENT)
    events["start"] = block.event_start
    events["holdout"][:-1] = holdout
    lines = np.zeros(n_lines + 1, LINE)
    lines["start"], lines["cost"] = block.line_start, block.cost_start
    for name in ("label", "weight", "initial", "shared"):
        lines[name][:n_lines] = getattr(block, name)
    costs = np.zeros(len(block.cost), COST)
    costs["action"], costs["cost"], costs["probability"] = block.cost_action, block.cost, block.probability
    spans = np.zeros(len(block.span_start), SPAN)
    spans["start"] = block.span_start
    spans["namespace"][:-1] = block.span_namespace
    features = np.zeros(len(block.hash), FEATURE)
    features["hash"], features["value"] = block.hash, block.value
    return Stream(events=events, lines=lines, costs=costs, spans=spans, features=features)
