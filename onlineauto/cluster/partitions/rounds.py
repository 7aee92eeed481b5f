"""Rounds of blocks that are there already, for a service that is far behind its log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.cluster.partitions.coordinator import Coordinator, RoundSchedule
from onlineauto.cluster.partitions.cutting import take_events
from onlineauto.cluster.partitions.pool import ThreadPool
from onlineauto.cluster.partitions.run import PARTITIONS
from onlineauto.engine.outliers.located import locate_outliers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.workspace.workspace import Workspace


_SCHEDULE = RoundSchedule(alone=8192, longest=65536 // PARTITIONS)
"""Fewer events than of files are learnt alone, since a service learns in rounds while it is far behind."""


class BlockRounds:
    """Workers that learn blocks of a workspace in rounds."""

    def __init__(self, workers: int, *, plans: bool = True, schedule: RoundSchedule | None = None) -> None:
        self.plans, self._workers = plans, min(workers, PARTITIONS)
        self._schedule = schedule or _SCHEDULE
        self.alone = self._schedule.alone
        self._coordinator: Coordinator | None = None
        self._pool: ThreadPool | None = None

    def learn(
        self, workspace: Workspace, blocks: Sequence[Block], done: int
    ) -> Iterator[tuple[Block, Outcomes]]:
        """Learn blocks with a workspace that has learnt `done` events; yield all events with outcomes.

        The result depends on the blocks together and on `done`, and not on the number of workers.
        """
        coordinator, pool = self._begin(workspace)
        begin, n = 0, sum(map(len, blocks))
        while begin < n:
            head, rest = coordinator.plan(done + begin)
            if n - begin < self._schedule.shortest:
                head, rest = n - begin, 0
            end = min(begin + head + rest, n)
            while head:
                first = take_events(blocks, begin, min(begin + head, n))
                yield self._located(workspace, first, workspace.learn_block(first))
                begin += len(first)
                head = coordinator.more_head(done + begin, end - begin)
            if begin < end:
                chunks = coordinator.cut([take_events(blocks, begin, end)])
                ends = pool.learn(coordinator, chunks)
                pool.merge(coordinator, ends)
                for result in ends:
                    workspace.diagnostics.add(result.problems)
                for chunk, result in zip(chunks, ends, strict=True):
                    yield self._located(workspace, chunk.block, result.outcomes)
            begin = end

    def _begin(self, workspace: Workspace) -> tuple[Coordinator, ThreadPool]:
        """Return the coordinator of a workspace, and workers that have learnt from no other one."""
        if self._coordinator is None or self._coordinator.workspace is not workspace or self._pool is None:
            self.close()
            self._coordinator = Coordinator(workspace, PARTITIONS, self._schedule)
            self._pool = ThreadPool(self._workers)
        return self._coordinator, self._pool

    @staticmethod
    def _located(workspace: Workspace, block: Block, outcomes: Outcomes) -> tuple[Block, Outcomes]:
        locate_outliers(block, outcomes, workspace.diagnostics)
        return block, outcomes

    def close(self) -> None:
        """End the workers; the next call of `learn` starts others."""
        if self._pool is not None:
            self._pool.close()
        self._pool = self._coordinator = None
