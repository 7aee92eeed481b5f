"""``Rows``: the features of many lines in columns, and the assembly of Blocks from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.features.block import UNLABELLED, Block

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from onlineauto.formats.mappings.name_hashes import NameHashes

_Part = tuple["Rows", "NDArray[np.int64]"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """The features of one namespace, row by row."""

    namespace: int  # Number of the namespace.
    start: NDArray[np.int64]  # int64[n_rows + 1]: index of the first feature of each row.
    hash: NDArray[np.uint32]  # uint32[n_features]:
    value: NDArray[np.float32]  # float32[n_features]: never 0.

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.start) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """Labels of a block whose events have several lines."""

    line: NDArray[np.int64]  # int64[n_logged]: lines with a cost, ascending.
    cost: NDArray[np.float32]  # float32[n_logged]:
    probability: NDArray[np.float32]


def rows_of_matrix(namespace: int, hashes: NDArray[np.uint32], values: NDArray[np.float32]) -> Rows:
    """Return the rows of a dense matrix of values; zeros are left out.

    Parameters
    ----------
    namespace : int
    hashes : uint32[n_columns] or uint32[n_rows, n_columns]
    values : float32[n_rows, n_columns]
    """
    there = values != 0
    return Rows(
        namespace=namespace,
        start=np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int64),
        hash=np.broadcast_to(hashes, values.shape)[there],
        value=values[there],
    )


def assemble(
    parts: Sequence[_Part],
    *,
    event_start: NDArray[np.int64],
    row: NDArray[np.int64],
    names: NameHashes,
    shared: NDArray[np.bool_] | None = None,
    labels: Labels | None = None,
    label: NDArray[np.float32] | None = None,
    weight: NDArray[np.float32] | None = None,
) -> Block:
    """Return a block assembled from the rows of its namespaces.

    Parameters
    ----------
    parts : sequence of (Rows, int64[n_lines])
        Namespaces in their order on a line; for each line the index of its row in them, -1 for none.
    event_start : int64[n_events + 1]
        First line of each event.
    row : int64[n_lines]
        The row of each line in the frame or array, from 0.
    names : NameHashes
        Has the namespaces.
    shared : bool[n_lines], optional
        True for shared lines.
    labels : Labels, optional
        Labels of bandits.
    label : float32[n_lines], optional
        Labels of single lines.
    weight : float32[n_lines], optional
        Importance weights, equal on all lines of an event.
    """
    n = int(event_start[-1])
    zeros = np.zeros(n, np.float32)
    cost_start = np.zeros(n + 1, np.int64)
    n_costs = 0
    if labels is not None:
        n_costs = len(labels.line)
        cost_start[1:] = np.searchsorted(labels.line, np.arange(n), side="right")
    return Block.of_columns(
        event_start=event_start,
        line_number=row + 1,
        shared=np.zeros(n, bool) if shared is None else shared,
        label=np.full(n, UNLABELLED, np.float32) if label is None else label,
        weight=np.ones(n, np.float32) if weight is None else weight,
        initial=zeros,
        cost_start=cost_start,
        cost_action=np.zeros(n_costs, np.uint32),
        cost=zeros[:0] if labels is None else labels.cost,
        probability=zeros[:0] if labels is None else labels.probability,
        tag_start=np.zeros(n + 1, np.int64),
        tag=np.zeros(0, np.uint8),
        **_feature_columns(parts, n),
        namespaces=names.namespaces,
        rules=names.rules,
        objects="row",
    )


def _feature_columns(parts: Sequence[_Part], n_lines: int) -> dict[str, NDArray[Any]]:
    counts = np.zeros((n_lines, len(parts)), np.int64)
    for j, (rows, row) in enumerate(parts):
        there = row >= 0
        counts[there, j] = np.diff(rows.start)[row[there]]
    start = np.concatenate([[0], np.cumsum(counts.ravel())]).astype(np.int64)
    hash_, value = np.empty(start[-1], np.uint32), np.empty(start[-1], np.float32)
    for rows, into, out_of in _moves(parts, start[:-1].reshape(counts.shape)):
        hash_[into], value[into] = rows.hash[out_of], rows.value[out_of]
    filled = counts.ravel() > 0
    numbers = np.array([rows.namespace for rows, _ in parts], np.int32)
    return {
        "line_start": np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))]).astype(np.int64),
        "span_namespace": np.tile(numbers, n_lines)[filled],
        "span_start": np.append(start[:-1][filled], start[-1]),
        "hash": hash_,
        "value": value,
    }


def _moves(
    parts: Sequence[_Part], start: NDArray[np.int64]
) -> Iterator[tuple[Rows, NDArray[np.int64], NDArray[np.int64]]]:
    """Yield, for each namespace, its rows, and the target and source indices of its features."""
    for j, (rows, row) in enumerate(parts):
        lines = np.flatnonzero(row >= 0)
        of_line = row[lines]
        sizes = np.diff(rows.start)[of_line]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield (
            rows,
            np.repeat(start[lines, j], sizes) + within,
            np.repeat(rows.start[:-1][of_line], sizes) + within,
        )
