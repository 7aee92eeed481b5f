"""Blocks of cells on servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.cluster.elastic.learning.combine_kernels import FIELDS, Arrivals, BlockCells, Undo, combine
from onlineauto.cluster.elastic.learning.header import Header, HeaderShard
from onlineauto.learners.cells import read_cells, write_cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.elastic.protocol.work import Shard
    from onlineauto.workspace.workspace import Workspace

HEADER = 0
"""The number of the block with the header; all later blocks have cells, in ascending order."""


class Cells(NamedTuple):
    """Some cells of a block with their values. The arrays are read-only."""

    cell: NDArray[np.uint32]
    value: NDArray[np.float32]  # [n, FIELDS · lanes]


class RowShard:
    """A block of consecutive cells."""

    def __init__(self, rows: BlockCells, *, lanes: int, rescales: bool) -> None:
        self.rows, self._lanes, self._rescales = rows, lanes, rescales
        self._undo = Undo(np.zeros(0, np.uint32), np.zeros((0, FIELDS * lanes), np.float32))

    def read(self, keys: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the values of cells: float32[n, FIELDS · lanes]."""
        return self.rows.value.take(keys, axis=0)

    def read_before(self, keys: NDArray[np.uint32]) -> NDArray[np.float32]:
        """Return the values of cells before the last tick."""
        read, undo = self.rows.value.take(keys, axis=0), self._undo
        if len(undo.cell):
            at = np.minimum(np.searchsorted(undo.cell, keys), len(undo.cell) - 1)
            changed = undo.cell[at] == keys
            read[changed] = undo.value[at[changed]]
        return read

    def apply(self, updates: Sequence[Cells]) -> None:
        """Combine the cells of the parts of a tick, in the order of workers."""
        if not updates:
            self._undo = Undo(self._undo.cell[:0], self._undo.value[:0])
            return
        cell = np.concatenate([each.cell for each in updates])
        value = np.concatenate([each.value for each in updates])
        small = cell.astype(np.uint16) if len(self.rows.value) <= 1 << 16 else cell  # sorts much faster
        arrivals = Arrivals(cell, value, np.argsort(small, kind="stable"))
        undo = Undo(np.empty_like(cell), np.empty_like(value))
        n = combine(self.rows, arrivals, undo, self._lanes, self._rescales)
        self._undo = Undo(undo.cell[:n], undo.value[:n])

    def dump(self) -> Cells:
        """Return a copy of all cells that were ever learned."""
        cell = np.flatnonzero(self.rows.touched).astype(np.uint32)
        return Cells(cell, self.rows.value[cell])


class ModelShards:
    """Creates the blocks of the model of a fresh workspace.

    Parameters
    ----------
    fresh : Workspace
        A workspace that has not learned any event.
    blocks : int
        Number of blocks of cells.

    Attributes
    ----------
    sizes : dict of int to int
        Number of cells of each block; the header counts as one cell.
    shift : int
        Number of low bits of a cell that are its index in its block.
    """

    def __init__(self, fresh: Workspace, blocks: int) -> None:
        model, rule = fresh.learner.model, fresh.learner.rule
        self._model, self._rescales = model, bool(rule.normalized)
        cells = len(model.weights)
        self.shift = (cells // blocks - 1).bit_length()
        self.sizes = {HEADER: 1} | dict.fromkeys(range(1, blocks + 1), cells // blocks)

    def make(self, block: int) -> Shard:
        """Return a block before the first event."""
        if block == HEADER:
            return HeaderShard(Header.of(self._model, np.zeros(4)))
        return self._fresh_rows(block)

    def _fresh_rows(self, block: int) -> RowShard:
        begin, end = (block - 1) << self.shift, block << self.shift
        lanes = self._model.weights.shape[1]
        value = read_cells(self._model, slice(begin, end), fields=FIELDS).reshape(end - begin, -1)
        rows = BlockCells(value, self._model.touched[begin:end].copy())
        return RowShard(rows, lanes=lanes, rescales=self._rescales)

    def load(self, block: int, payload: Header | Cells) -> Shard:
        """Return the block from the result of `dump`."""
        if isinstance(payload, Header):
            return HeaderShard(payload)
        shard = self._fresh_rows(block)
        shard.rows.value[payload.cell] = payload.value
        shard.rows.touched[payload.cell] = True
        return shard


def write_block(target: Workspace, first: int, cells: Cells) -> None:
    """Write cells of a block that begins at cell `first` into the table of a workspace."""
    model = target.learner.model
    at = first + cells.cell.astype(np.int64)
    write_cells(model, at, cells.value.reshape(len(at), FIELDS, model.weights.shape[1]))
    model.touched[at] = True
