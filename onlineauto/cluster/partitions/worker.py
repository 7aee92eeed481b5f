"""Worker: learn a chunk of a round from a base; no I/O, no clock, no decision."""

from __future__ import annotations

from collections.abc import Sequence  # noqa: TC003
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np  # noqa: TC002
from numpy.typing import NDArray  # noqa: TC002
from threadpoolctl import ThreadpoolController

from onlineauto.cluster.partitions.cutting import join_outcomes
from onlineauto.cluster.partitions.division import Division
from onlineauto.cluster.partitions.state import (
    SentState,
    TrackedTables,
    load_dense,
    resting_members,
    settled_arrays,
    take_rows,
)
from onlineauto.cluster.partitions.text_file import UnexpectedEventsError, UnreadBlock
from onlineauto.engine.search.deferred import Deferred, Findings, SearchChoices
from onlineauto.errors import InputError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.options import Configuration

_GOLDEN = 0x9E3779B97F4A7C15
_LEVELS = ("live.levels", "ensemble.test.level")
"""Levels of tests, which a worker sets to 0 so that no evidence is enough."""


class Base(NamedTuple):
    """The state from which all workers of a round learn.

    If a worker has the base before it (`version` - 1), the changes are enough; otherwise it needs `state` of
    version 0: all cells that differ from a new model's.
    """

    version: int
    since: int  # the version that a worker must have; 0 is a new model
    control: SearchChoices
    gains: NDArray[np.float64]
    state: SentState
    owners: Sequence[tuple[str, int, int]] = ()  # of each block: name, number, server; none without servers


class ChunkEnd(NamedTuple):
    """The state of a worker after a chunk, and the results of its events."""

    state: SentState
    findings: Findings
    outcomes: Outcomes
    problems: Diagnostics


@cache
def _blas() -> ThreadpoolController:
    """Return what limits the threads of the library for linear algebra."""
    return ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context with one thread of linear algebra, because bits depend on their number."""
    limit: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return limit


class Worker:
    """Learns chunks, each from a base; it reads the tables of a `coordinator` in this process."""

    def __init__(self, configuration: Configuration, coordinator: Workspace | None = None) -> None:
        self._coordinator = coordinator
        self._begin(configuration)

    def _begin(self, configuration: Configuration) -> None:
        self.workspace = Workspace(configuration=configuration)
        self.version = 0
        self._deferred = Deferred(self.workspace.searching, self.workspace.layout)
        self._tracked = TrackedTables(self.workspace, self._coordinator)
        self._changed: dict[str, NDArray[np.int64]] = {}

    def adopt(self, base: Base, shares: Sequence[SentState] = ()) -> None:
        """Adopt a base for the next chunks; `shares` are what servers have merged since the last base."""
        if base.since not in (0, self.version):
            raise ValueError(f"base {base.version} changes {base.since}, and the worker has {self.version}")
        if base.since == 0 and self.version and self._coordinator is None:
            self._begin(self.workspace.configuration)  # it lacks the cells that are 0 again
        self._base, self.version = base, base.version
        self._tracked.reset(self._changed)
        self._changed = {}
        self._deferred.follow(base.control, base.gains)
        if self._coordinator is not None:
            self._tracked.copy_coordinator()
        tables = self._tracked.tables()
        for state in (*(shares if base.since else ()), base.state):
            for name, part in state.tables.items():
                if name in tables:
                    self._tracked.rebase(name, part)

    def learn(self, block: Block, seed: int) -> ChunkEnd:
        """Learn a chunk from the last base, and return the end; `seed` makes its random draws differ."""
        workspace, base = self.workspace, self._base
        self._tracked.reset(self._changed)
        load_dense(workspace, base.state.dense)
        self._deferred.follow(base.control, base.gains)
        random = workspace.learner.task.exploration.random
        random[0] = (int(random[0]) + seed * _GOLDEN) % 2**64
        workspace.diagnostics = Diagnostics()
        try:
            outcomes = self._learn_pieces(block)
        finally:
            resting = resting_members(workspace.searching.live_configs.arrays.ensemble)
            self._changed = self._tracked.changed(resting)
        findings = self._deferred.findings()
        tables = {
            name: take_rows(table, self._changed[name]) for name, table in self._tracked.tables().items()
        }
        with one_blas_thread():
            dense = settled_arrays(workspace, base.state.dense) | self._tracked.surest(tables)
        for name in _LEVELS:
            dense.pop(name, None)
        return ChunkEnd(SentState(dense, tables), findings, outcomes, workspace.diagnostics)

    def divide(self, state: SentState) -> tuple[SentState, list[SentState]]:
        """Return what the coordinator needs of the end of a chunk, and the part of each server."""
        base = self._base
        if not base.owners:
            return state, []
        owners = {(name, number): server for name, number, server in base.owners}
        return SentState({}, {}), Division.of(self.workspace, owners, base.state.dense).split(state)

    def _learn_pieces(self, block: Block) -> Outcomes:
        """Learn a block, piece by piece if it is not read yet."""
        if not isinstance(block, UnreadBlock):
            return self.workspace.learn_block(block)
        n_lines, outcomes = [], []
        try:
            for piece in block.pieces():
                outcomes.append(self.workspace.learn_block(piece))
                n_lines.append(piece.n_lines)
        except InputError as error:
            raise UnexpectedEventsError(str(error)) from error
        return join_outcomes(n_lines, outcomes)
