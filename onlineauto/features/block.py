"""Block: many events in columns, the one shape in which data flows through the house.

::

    event ──event_start──▶ lines ──line_start──▶ spans ──span_start──▶ features
                             │ label, weight, initial, shared, tag
                             └─cost_start──▶ (cost_action, cost, probability)

A *span* is a run of features of one namespace, in file order; a namespace that a line opens twice has two.
Empty spans are not kept. All the offset columns have one entry more than what they index, as in CSR.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.namespaces import Namespaces

__all__ = ["UNLABELLED", "Block"]

UNLABELLED = np.float32(np.finfo(np.float32).max)
"""Label or cost of a line that has none (VW's FLT_MAX)."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """Some consecutive events of a stream.

    Attributes
    ----------
    event_start : int64[n_events + 1]
        First line of each event.
    line_number : int64[n_lines]
        1-based line number in the file.
    line_start : int64[n_lines + 1]
        First span of each line.
    shared : bool[n_lines]
        Whether the line is a ``shared`` header.
    label, weight, initial : float32[n_lines]
        Simple label (`UNLABELLED` if none), importance weight, initial prediction.
    cost_start : int64[n_lines + 1]
        First cost of each line; at most one a line in ADF input.
    cost_action : uint32[n_costs]
        Action as written before the first colon.
    cost, probability : float32[n_costs]
        Cost (`UNLABELLED` if none), logged probability (0 if none).
    tag_start : int64[n_lines + 1]
        First byte of each tag.
    tag : uint8[]
        Bytes of the tags.
    span_namespace : int32[n_spans]
        Namespace of each span, an index into `namespaces`.
    span_start : int64[n_spans + 1]
        First feature of each span.
    hash : uint32[n_features]
        Feature hashes, before any table size is known.
    value : float32[n_features]
        Feature values, namespace weight included; never 0.
    namespaces : Namespaces
        Names behind the namespace numbers; shared by the blocks of a stream and growing with it.
    """

    event_start: NDArray[np.int64]
    line_number: NDArray[np.int64]
    line_start: NDArray[np.int64]
    shared: NDArray[np.bool_]
    label: NDArray[np.float32]
    weight: NDArray[np.float32]
    initial: NDArray[np.float32]
    cost_start: NDArray[np.int64]
    cost_action: NDArray[np.uint32]
    cost: NDArray[np.float32]
    probability: NDArray[np.float32]
    tag_start: NDArray[np.int64]
    tag: NDArray[np.uint8]
    span_namespace: NDArray[np.int32]
    span_start: NDArray[np.int64]
    hash: NDArray[np.uint32]
    value: NDArray[np.float32]
    namespaces: Namespaces

    def __len__(self) -> int:
        """Count the events."""
        return len(self.event_start) - 1

    @property
    def n_lines(self) -> int:
        """Lines, shared ones included."""
        return len(self.line_number)

    @property
    def n_features(self) -> int:
        """Features as read: no constant, no interactions."""
        return len(self.hash)

    def head(self, n: int) -> Block:
        """The first `n` events, over the same columns."""
        return replace(self, event_start=self.event_start[: n + 1])

    def tag_of(self, line: int) -> str:
        """Tag of one line, empty if it has none."""
        return self.tag[self.tag_start[line] : self.tag_start[line + 1]].tobytes().decode("utf-8", "replace")
