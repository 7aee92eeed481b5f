"""``Division``: which merge server owns which block of a model, and which part of a state it receives.

A *block* is a share of one table, a sixteenth of its cells; or of one regression, the covariances of every
sixteenth action; or the whole state of another member; or `REST`, all other arrays. Its name is that of the
table or member and a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.cluster.partitions.state import (
    ENSEMBLE,
    SentState,
    TableCells,
    prefix_of,
    regressions_of,
    tables_of,
    whole_members,
)
from onlineauto.engine.ensemble.merge import MergedPart
from onlineauto.engine.ensemble.regression import STATISTICS
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.ensemble import MOST_ACTIONS, Known

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from onlineauto.workspace.workspace import Workspace

Block = tuple[str, int]
"""The name of a table or member, and the number of its block."""
RANGES = 16
"""Number of blocks of a table or of the known actions; new actions of a round are one more."""
_MEMBERS = f"{ENSEMBLE}.members."
REST = "rest", 0
"""The block of all small arrays, whose owner merges them like a coordinator without servers."""
_SIZE_OF_REST, _SIZE_OF_ACTION = 90_000.0, 1_500.0
"""Numbers of a covariance that take as long to merge as the rest, and as an action without its own."""
_OF_CELL, _OF_WHOLE = 0.5, 0.15
"""The same for each number of a cell and of a member that merges as a whole."""


class _Members(NamedTuple):
    """Names of the members of an ensemble, by what they merge."""

    regressions: dict[str, str]  # with the path of the regression
    whole: list[str]
    names: list[str]  # of all


def _members_of(workspace: Workspace) -> _Members:
    ensemble = workspace.searching.live_configs.arrays.ensemble
    names = [member.name for member in states_of(ensemble).members] if ensemble.on else []
    return _Members(regressions_of(ensemble), whole_members(ensemble), names)


def blocks_of(workspace: Workspace) -> list[Block]:
    """Return the blocks of a model; the table of screening may not be in use yet."""
    members = _members_of(workspace)
    counts = dict.fromkeys((*tables_of(workspace), "screen"), RANGES)
    counts |= dict.fromkeys(members.regressions, RANGES + 1) | dict.fromkeys(members.whole, 1)
    return [REST, *((name, number) for name, count in counts.items() for number in range(count))]


class Division:
    """Divides states among the servers that own blocks, for a model that knows `n_actions` actions."""

    def __init__(self, workspace: Workspace, owners: Mapping[Block, int], n_actions: int) -> None:
        self._owners, self._members = owners, _members_of(workspace)
        self._n_cells = {name: len(table.arrays[0]) for name, table in tables_of(workspace).items()}
        self._n_actions = n_actions
        self.servers = sorted(set(owners.values()))

    @classmethod
    def of(
        cls, workspace: Workspace, owners: Mapping[Block, int], dense: Mapping[str, NDArray[Any]]
    ) -> Division:
        """Return the division for a base with such small arrays, or for a workspace that has the base."""
        ensemble = workspace.searching.live_configs.arrays.ensemble
        tally = dense.get(f"{_MEMBERS}inputs.tally", ensemble.members.inputs.tally if ensemble.on else None)
        return cls(workspace, owners, 0 if tally is None else int(tally[Known.ACTIONS]))

    def numbers(self, name: str, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of the block of each cell of a table, or of each action."""
        if name in self._members.regressions:
            return np.where(rows < self._n_actions, rows % RANGES, RANGES)
        return rows * RANGES // self._n_cells[name]

    def cells_of(self, name: str, cells: TableCells, server: int) -> TableCells:
        """Return the cells that a server owns."""
        is_own = np.array(
            [
                self._owners[name, number] == server
                for number in range(RANGES + 1)
                if (name, number) in self._owners
            ]
        )
        rows = np.flatnonzero(is_own[self.numbers(name, cells.rows)])
        return TableCells(cells.rows[rows], tuple(values[rows] for values in cells.values))

    def part(self, server: int) -> MergedPart:
        """Return what a server merges of the members' states, besides cells."""
        every = TableCells(np.arange(MOST_ACTIONS), ())
        owned = {name for (name, _), owner in self._owners.items() if owner == server}
        members = [name for name in self._members.names if name in owned or self.merges_rest(server)]
        whole = [name for name in self._members.whole if name in owned]
        return MergedPart(
            [name for name in members if name in whole or name not in self._members.whole],
            whole,
            {
                name: self.cells_of(name, every, server).rows.tolist()
                for name in self._members.regressions
                if name in members
            },
        )

    def merges_rest(self, server: int) -> bool:
        """Return whether a server owns all small arrays."""
        return self._owners[REST] == server

    def split(self, state: SentState) -> list[SentState]:
        """Return the part of each server, in order, of an end; all need the small arrays of members."""
        dense, tables = dict(state.dense), dict(state.tables)
        for name, path in self._members.regressions.items():
            if f"{path}.{STATISTICS[0]}" in dense:  # the member has changed
                values = tuple(dense.pop(f"{path}.{array}") for array in STATISTICS)
                tables[name] = TableCells(np.arange(len(values[0])), values)
        whole = {
            name: {path: dense.pop(path) for path in [*dense] if path.startswith(prefix_of(name))}
            for name in self._members.whole
        }
        parts = []
        for server in self.servers:
            part = self.part(server)
            prefixes = (f"{_MEMBERS}inputs.", *map(prefix_of, part.members), "live.tally")
            small = {path: array for path, array in dense.items() if path.startswith(prefixes)}
            arrays = dense if self.merges_rest(server) else small
            for name in part.whole:
                arrays = arrays | whole[name]
            cells = {
                name: self.cells_of(name, each, server)
                for name, each in tables.items()
                if name in part.members or name not in self._members.names
            }
            parts.append(SentState(arrays, cells))
        return parts

    def sizes(self, state: SentState) -> dict[Block, float]:
        """Return about how long each block takes to merge, from a merged state."""
        sizes: dict[Block, float] = {REST: _SIZE_OF_REST}
        actions = {
            name: TableCells(np.arange(len(state.dense[f"{path}.spread"])), (state.dense[f"{path}.spread"],))
            for name, path in self._members.regressions.items()
            if f"{path}.spread" in state.dense and name not in state.tables
        }
        for name, cells in (state.tables | actions).items():
            is_regression = name in self._members.regressions
            width = sum(float(np.prod(values.shape[1:])) for values in cells.values)
            width = width + _SIZE_OF_ACTION if is_regression else width * _OF_CELL
            counts = np.bincount(self.numbers(name, cells.rows), minlength=1)
            sizes |= {(name, number): width * count for number, count in enumerate(counts.tolist()) if count}
        for name in self._members.whole:
            arrays = [array for path, array in state.dense.items() if path.startswith(prefix_of(name))]
            if arrays:
                sizes[name, 0] = _OF_WHOLE * sum(array.size for array in arrays)
        return sizes
