"""Define the records that kernels read and write, including the records of a Block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.slots import Slots

CONSTANT_HASH = np.uint32(11650396)
"""Hash of VW's constant feature, which every event has."""

Records: TypeAlias = Any
"""A structured array. Numba reads its fields as attributes, which NumPy's type annotations do not allow."""

LINE = np.dtype(
    [
        ("number", np.int64),  # line number in the file, from 1
        ("start", np.int64),  # first span
        ("cost", np.int64),  # first cost
        ("tag", np.int64),  # first byte of the tag
        ("label", np.float32),
        ("weight", np.float32),
        ("initial", np.float32),
        ("shared", np.bool_),
        ("slot", np.bool_),
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
LEAST_VECTOR = 16
"""Minimum number of features of a vector: a span whose hashes are consecutive, which keeps its zeros."""
GROUP = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("behind", np.int64),
        ("key", np.int32),
        ("covered", np.int32),
    ],
    align=True,
)
"""Record of a group: the features of a namespace of a line.

The last `behind` features belong to the shared line. `covered` is the shared group that it covers, or -1.
"""
PLACE = np.dtype([("start", np.int64), ("end", np.int64), ("group", np.int64)], align=True)
"""Record of a group key of an example: its features and its group, which is -1 if the key is absent."""
FACTOR = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("position", np.int64),
        ("chain", np.uint64),
        ("product", np.float32),
        ("repeats", np.bool_),
    ],
    align=True,
)
"""Record of a factor of a product."""

_CONSTANT = np.array((CONSTANT_HASH, 1), FEATURE)
_NO_FEATURES = np.empty(0, FEATURE)
NO_SLOTS = np.empty((0, 4), np.int64)
"""The CCB slots of a stream without slots."""

RUN = np.dtype([("start", np.int64), ("end", np.int64), ("product", np.int64)], align=True)
"""Record of listed features that are used together; `product` is 0 for linear ones, else 1 + the product."""


class Stream(NamedTuple):
    """A Block for kernels; records with a ``start`` have a sentinel that ends the last one."""

    events: NDArray[np.int64]  # [n + 1]: first line of each
    holdout: NDArray[np.bool_]  # [n]: whether an event is held out
    lines: Records
    costs: Records
    spans: Records
    features: Records  # of the block; the constant; features that identify slots; free space for one event
    constant: int  # index of the constant among the features
    room: int  # index of the first feature of the free space
    slots: NDArray[np.int64]  # [n, 4]: CCB slots, the units of the loop if there are any; columns below


SHARED_LINE, FIRST_SLOT, SLOT_LINE, INDEX_FEATURE = range(4)
"""Columns of slots: three lines, and the index of the feature that identifies the slot, -1 for none.

The lines are the event's shared line, its first slot and the slot itself; actions are between the first two.
"""


class Layout(NamedTuple):
    """The mapping from namespaces to groups, the same for all events of a block."""

    key: NDArray[np.int32]  # [n_namespaces]: group key of each namespace
    seed: NDArray[np.uint32]  # [n_namespaces]: its hash, the seed of its features' hashes
    ignore: NDArray[np.bool_]  # [n_keys]: whether dropped altogether
    ignore_linear: NDArray[np.bool_]  # [n_keys]: whether used in interactions only
    bins: NDArray[np.bool_]  # [n_keys]: whether the namespace has bins of a number, see `BINS`
    constant_key: int  # group key of the constant; -1: no constant
    default_key: int  # group key of the namespace without a name if events have slots, else -1
    slot_key: int  # group key of a slot's features without a namespace
    index_key: int  # group key of the feature that identifies a slot
    singled: bool  # whether namespaces used in interactions only may be products of one factor


class Interactions(NamedTuple):
    """Products of namespaces, in the order in which they are summed."""

    start: NDArray[np.int64]  # [n + 1]: first factor of each product
    factor: NDArray[np.int32]  # group key of each factor
    permutations: bool
    n_slots: int  # number of live configs
    holders: NDArray[np.bool_]  # [1 + n, n_slots + 3]: which use linear features (all do), and each product


class Scratch(NamedTuple):
    """Working records of one example, reused for the next."""

    groups: Records  # groups of the shared line, then groups of the action
    places: Records  # [n_keys]
    factors: Records  # of the current product; `repeats`: whether it is the same group as the factor before
    lines: NDArray[np.int64]  # [most lines of an event]: lines of the actions that a slot can have
    taken: NDArray[np.bool_]  # [the same]: whether an earlier slot has the action
    listed: NDArray[np.bool_]  # [the same]: whether the slot is confined to the action
    left: NDArray[np.int32]  # [n_keys]: namespaces that VW does not remove from its list after a slot
    n_left: NDArray[np.int64]  # [1]


class Numbering(NamedTuple):
    """Masks for adding the number of an action of ``--cb N`` to the hash of a feature."""

    kept: np.uint32  # mask applied before the addition
    mask: np.uint32  # mask applied after it


class Listing(NamedTuple):
    """The arrays that list the features of an example, large enough for all of them."""

    cell: NDArray[np.unsignedinteger]
    value: NDArray[np.float32]
    mask: np.uint64  # selects the bits of a hash that are listed


class Example(NamedTuple):
    """The listed features of one example, for all live configs together."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    runs: Records  # start, end: bounds in the list; product
    n_runs: int
    holders: NDArray[np.bool_]  # [1 + products, live configs]: True if it uses the runs of a product


def largest(bounds: NDArray[np.int64]) -> int:
    """Return the size of the largest of consecutive ranges, from their beginnings and the end of the last."""
    if len(bounds) == 2:  # fast path for a single event
        return int(bounds[1] - bounds[0])
    return int((bounds[1:] - bounds[:-1]).max(initial=0))


def make_stream(block: Block, holdout: NDArray[np.bool_], slots: Slots | None = None) -> Stream:
    """Return a block prepared for kernels, with free space after its features for joined features.

    `holdout` marks events or, if there are `slots`, which are then processed one by one, slots.
    """
    n = block.n_features
    indices = _NO_FEATURES if slots is None else slots.index_features
    size = n + 1 + len(indices)
    most = largest(block.span_start[block.line_start[block.event_start]])
    features = np.empty(size + 2 * most + 1, FEATURE)  # + 1: the constant may be copied
    features[:n].view(np.uint8)[:] = block.features.view(np.uint8)  # bytewise: NumPy copies field by field
    features[n] = _CONSTANT
    table = NO_SLOTS
    if slots is not None:
        features[n + 1 : size] = indices
        table = slots.table(n + 1)
    return Stream(block.event_start, holdout, block.lines, block.costs, block.spans, features, n, size, table)
