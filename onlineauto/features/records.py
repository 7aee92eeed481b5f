"""Records: the rows that kernels walk, those of a Block among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.slots import Slots

__all__ = [
    "CONSTANT_HASH",
    "COST",
    "FACTOR",
    "FEATURE",
    "FIRST_SLOT",
    "GROUP",
    "LINE",
    "PLACE",
    "RUN",
    "SHARED_LINE",
    "SLOT_LINE",
    "SPAN",
    "TOLD",
    "Example",
    "Interactions",
    "Layout",
    "Numbering",
    "Records",
    "Scratch",
    "Stream",
    "largest",
    "make_stream",
]

CONSTANT_HASH = np.uint32(11650396)
"""Hash of VW's feature that every example has."""

Records: TypeAlias = Any
"""A structured array; Numba reads its fields as attributes, which NumPy's own types do not."""

LINE = np.dtype(
    [
        ("number", np.int64),  # in the file, from 1
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
"""Record of a namespace of a line: its features; how many of them, at the end, are the shared line's; and the
shared group that it stands in place of, -1 if none."""
PLACE = np.dtype([("start", np.int64), ("end", np.int64), ("group", np.int64)], align=True)
"""Record of a group key of an example: its features and its group; nothing, and -1, if it is absent."""
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
_NO_SLOTS = np.empty((0, 4), np.int64)

RUN = np.dtype([("start", np.int64), ("end", np.int64), ("product", np.int64)], align=True)
"""Record of listed features that are used together: of no product (0), or of one (1 + its number)."""


class Stream(NamedTuple):
    """A Block for kernels; where a record has a ``start``, one more record ends the last one."""

    events: NDArray[np.int64]  # [n + 1]: first line
    holdout: NDArray[np.bool_]  # [n]: predicted and not learnt
    lines: Records
    costs: Records
    spans: Records
    features: Records  # those of the block, the constant, what tells slots, room for what one example adds
    constant: int  # its place
    room: int  # where the room begins
    slots: NDArray[np.int64]  # [n, 4]: what the loop goes through if events have slots, see the columns below


SHARED_LINE, FIRST_SLOT, SLOT_LINE, TOLD = range(4)
"""Columns of slots: lines of the event's shared features, of its first slot and of the slot, with the actions
between the first two; and the place of the feature that tells the slot, -1 if it is not told."""


class Layout(NamedTuple):
    """How namespaces become groups, the same for all events of a block."""

    key: NDArray[np.int32]  # [n_namespaces]: group key of each namespace
    ignore: NDArray[np.bool_]  # [n_keys]: dropped altogether
    ignore_linear: NDArray[np.bool_]  # [n_keys]: kept for interactions only
    constant_key: int  # group key of the constant; -1: no constant
    default_key: int  # of the namespace without a name, if events have slots; else -1
    slot_key: int  # of that of a slot
    told_key: int  # of the feature that tells slots
    singled: bool  # what is kept for interactions only is used itself as a product of one factor


class Interactions(NamedTuple):
    """Products, in the order they are summed."""

    start: NDArray[np.int64]  # [n + 1]: first factor of each product
    factor: NDArray[np.int32]  # group key
    permutations: bool
    n_slots: int
    holders: NDArray[np.bool_]  # [1 + n, slots + 3]: who uses the linear features (all), and each product


class Scratch(NamedTuple):
    """Working records of one example, reused for every one."""

    groups: Records  # of the shared line first, then of the action
    places: Records  # [n_keys]
    factors: Records  # of the product at hand: start, end: features; repeats: those of the factor before
    lines: NDArray[np.int64]  # [most lines of an event]: of the actions that a slot can have
    taken: NDArray[np.bool_]  # [the same]: actions that slots before it have
    listed: NDArray[np.bool_]  # [the same]: actions that a slot is confined to
    left: NDArray[np.int32]  # [n_keys]: namespaces that VW forgets to take off the list after a slot
    n_left: NDArray[np.int64]  # [1]


class Numbering(NamedTuple):
    """How the hash of a feature becomes that of an action of ``--cb N``, whose number is added."""

    kept: np.uint32  # mask applied before it is added
    mask: np.uint32  # and after


class Example(NamedTuple):
    """The listed features of one example, for all live slots together."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]
    runs: Records  # start, end: places in the list; product
    n_runs: int
    holders: NDArray[np.bool_]  # [1 + products, slots]: who uses a run


def largest(bounds: NDArray[np.int64]) -> int:
    """Size of the largest of consecutive ranges; `bounds` are where they begin, and the end of the last."""
    if len(bounds) == 2:  # a single event should take no time
        return int(bounds[1] - bounds[0])
    return int((bounds[1:] - bounds[:-1]).max(initial=0))


def make_stream(block: Block, holdout: NDArray[np.bool_], slots: Slots | None = None) -> Stream:
    """Make a block ready for kernels, which copy what has to be put together behind its features.

    Parameters
    ----------
    block : Block
        Events.
    holdout : bool[n]
        Events, or slots, to predict and not to learn.
    slots : Slots, optional
        The slots of the events, which then are what is gone through one by one.
    """
    n = block.n_features
    told = _NO_FEATURES if slots is None else slots.told
    room = n + 1 + len(told)
    most = largest(block.span_start[block.line_start[block.event_start]])
    features = np.empty(room + 2 * most + 1, FEATURE)  # the constant may be copied too
    features[:n].view(np.uint8)[:] = block.features.view(np.uint8)  # bytes: NumPy copies records by field
    features[n] = _CONSTANT
    table = _NO_SLOTS
    if slots is not None:
        features[n + 1 : room] = told
        table = slots.table(n + 1)
    return Stream(block.event_start, holdout, block.lines, block.costs, block.spans, features, n, room, table)
