"""Merge server: owns blocks of a model, and merges what the chunks of a round have changed in them.

A server has a whole base, but for the cells that others own. So a server that dies is replaced by one that
receives the coordinator's full base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.cluster.partitions.division import Block, Division
from onlineauto.cluster.partitions.merge import merge_round, merge_share
from onlineauto.cluster.partitions.state import (
    SentState,
    TableCells,
    load_dense,
    put_rows,
    tables_of,
    take_rows,
)
from onlineauto.cluster.partitions.worker import one_blas_thread
from onlineauto.engine.search.deferred import Deferred
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.partitions.worker import Base
    from onlineauto.options import Configuration


class Moved(NamedTuple):
    """Cells that migrate to another server, as merged after the chunks of a version."""

    version: int
    tables: dict[str, TableCells]


class MergeServer:
    """Merges the cells, the actions and the members that it owns."""

    def __init__(self, configuration: Configuration, number: int) -> None:
        self.number = number
        self._begin(configuration)

    def _begin(self, configuration: Configuration) -> None:
        self._workspace = Workspace(configuration=configuration)
        self._deferred = Deferred(self._workspace.searching, self._workspace.layout)
        self._owned: set[Block] = set()
        self._inbox: list[Moved] = []
        self.version = 0

    def adopt(self, base: Base) -> None:
        """Adopt the base of the next chunks, and the owners of blocks; take the blocks that have arrived."""
        if base.since not in (0, self.version):
            raise ValueError(f"base {base.version} changes {base.since}, and the server has {self.version}")
        if base.since == 0 and self.version:
            self._begin(self._workspace.configuration)
        workspace, inbox = self._workspace, self._inbox
        self._deferred.follow(base.control, base.gains)
        load_dense(workspace, base.state.dense)
        owners = {(name, number): server for name, number, server in base.owners}
        self._division = Division.of(workspace, owners, base.state.dense)
        owned = {block for block, server in owners.items() if server == self.number}
        if inbox:
            self._clear(owned - self._owned)
        for tables in (*(moved.tables for moved in inbox), base.state.tables):
            self._put(tables)
        self._owned, self._inbox, self.version = owned, [], base.version

    def _clear(self, blocks: Collection[Block]) -> None:
        """Set the cells of blocks to 0: they may be left from an earlier time, when they had this owner."""
        for name, table in tables_of(self._workspace).items():
            rows = self._rows_of(name, np.arange(len(table.arrays[0])), blocks)
            for array in table.arrays:
                array[rows] = 0.0

    def _rows_of(self, name: str, rows: NDArray[np.int64], blocks: Collection[Block]) -> NDArray[np.int64]:
        """Return the cells of a table that are in any of some blocks."""
        numbers = [number for table, number in blocks if table == name]
        return rows[np.isin(self._division.numbers(name, rows), numbers)]

    def _put(self, parts: dict[str, TableCells]) -> None:
        """Write the cells that this server owns."""
        tables = tables_of(self._workspace)
        for name, cells in parts.items():
            if name in tables:
                put_rows(tables[name], self._division.cells_of(name, cells, self.number))

    def merge(self, ends: Sequence[SentState]) -> SentState:
        """Merge this server's parts of the ends of chunks, and return what has changed."""
        with one_blas_thread():
            merge = merge_round if self._division.merges_rest(self.number) else merge_share
            merged = merge(self._workspace, ends, self._division.part(self.number))
        self._put(merged.tables)
        return merged

    def give(self, blocks: Collection[Block]) -> Moved:
        """Return the cells of blocks that are not 0; this server keeps them until they have another owner."""
        tables = {}
        for name, table in tables_of(self._workspace).items():
            used = [array.view(np.uint32).any(axis=tuple(range(1, array.ndim))) for array in table.arrays]
            rows = self._rows_of(name, np.flatnonzero(np.logical_or.reduce(used)), blocks)
            if len(rows):
                tables[name] = take_rows(table, rows)
        return Moved(self.version, tables)

    def receive(self, inbox: Sequence[Moved]) -> None:
        """Keep blocks that have arrived until the next base says that this server owns them."""
        self._inbox, self.version = list(inbox), inbox[0].version
