"""Coordinator: rounds of learning from one base, cut into chunks, merged, and decided upon once.

A round begins with a short *head* of events that the coordinator learns alone, like a single learner: there
the search decides, on the merged evidence, and members are on trial. The rest of the round is cut into P
chunks of consecutive events. Workers learn the chunks from the same base, and their ends are merged into the
next base.

A coordinator reads no clock. So its result depends on the events and on P, and not on who learns
which chunk, or how often.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.automl.member_budget import TRIAL, has_new_members
from onlineauto.automl.search import REVIEW
from onlineauto.cluster.partitions.cutting import take_events
from onlineauto.cluster.partitions.merge import join_shares, load_merged, merge_round
from onlineauto.cluster.partitions.messages import Chunk
from onlineauto.cluster.partitions.state import SentState, TrackedTables, dense_arrays, tables_of, take_rows
from onlineauto.cluster.partitions.worker import Base, one_blas_thread
from onlineauto.engine.search.deferred import control_of_search

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.partitions.division import Block
    from onlineauto.cluster.partitions.text_file import EventRange, TextFile
    from onlineauto.cluster.partitions.worker import ChunkEnd
    from onlineauto.engine.ensemble.merge import Each
    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block as EventBlock
    from onlineauto.workspace.workspace import Workspace


_LOADED = 1
"""Version of the model with which a run begins; no worker has it, because 0 is a new model."""
PIECE = 8192
"""Number of events at a time that the coordinator learns alone, so that few are in memory."""
_TRIALS_LEFT = 2
"""The head of a round continues while the rest of the round is at least twice as long as a trial."""

_ROUNDS, _ENOUGH = 8, 1024
"""Numbers of rounds, or pieces that one learner has learnt, and of losses, with which others are compared."""
_RISE, _GAIN = 3.0, 1.0
"""Standard errors by which losses rise after a change, and by which one learner then loses less."""


class ChangeTest:
    """Compares the losses of each round with those before it; after a change one learner continues."""

    def __init__(self, begin: int = 0, rounds: Sequence[Sequence[float]] = ()) -> None:
        self.begin = begin
        self._rounds = deque((np.array(sums, np.float64) for sums in rounds), maxlen=_ROUNDS)

    def state(self) -> tuple[Any, ...]:
        """Return the arguments of a copy."""
        return self.begin, [sums.tolist() for sums in self._rounds]

    def note(self, outcomes: Sequence[Outcomes]) -> None:
        """Add the losses of a round, or of a piece that one learner has learnt."""
        self._rounds.append(np.sum([_sums(chunk) for chunk in outcomes], axis=0))

    def first_changed(self, chunks: Sequence[Outcomes]) -> int:
        """Return the chunk before those whose losses have risen; the number of chunks if none have."""
        sums, before = [_sums(chunk) for chunk in chunks], list(self._rounds)
        rises = [_rise(before, sums[chunk:]) for chunk in range(len(sums))]
        if max(rises, default=0.0) > _RISE:
            return max(rises.index(max(rises)) - 1, 0)  # a change may be in mid-chunk
        slow = any(_rise(before[:-n], [*before[-n:], *sums]) > _RISE for n in (1, 2))
        return 0 if slow else len(chunks)

    def confirm(self, begin: int, alone: Sequence[Outcomes], chunks: Sequence[Outcomes]) -> None:
        """Note the losses of one learner; if chunks of the same events lose more, `begin` is a change."""
        gains = np.concatenate([chunk.loss for chunk in chunks]) - np.concatenate(
            [chunk.loss for chunk in alone]
        )
        if gains.sum() > _GAIN * math.sqrt(float(gains @ gains)):
            self.begin = begin
            self._rounds.clear()
        self.note(alone)


def _sums(outcomes: Outcomes) -> NDArray[np.float64]:
    """Return number, sum and sum of squares of the losses of labelled events."""
    losses = outcomes.loss[outcomes.labelled].astype(np.float64)
    return np.array([len(losses), losses.sum(), losses @ losses])


def _rise(before: Sequence[NDArray[np.float64]], after: Sequence[NDArray[np.float64]]) -> float:
    """Return by how many standard errors the mean loss has risen; 0 if there are too few losses."""
    (m, total, squares), (n, latest, its_squares) = (sum(sums, np.zeros(3)) for sums in (before, after))
    if m < _ENOUGH or not n:
        return 0.0
    mean, variance, latest = total / m, squares / m - (total / m) ** 2, latest / n
    error = math.sqrt(max(max(variance, its_squares / n - latest**2) / n + variance / m, 0.0))
    return float(latest - mean) / error if error > 0.0 else 0.0


class RoundSchedule(NamedTuple):
    """The lengths of rounds, in events."""

    alone: int = 65536  # the first events, which the coordinator learns, because short rounds do not pay
    head: int = 32  # the first events of each later round, at least, which the coordinator learns
    shortest: int = 1024  # a round is at least so long,
    longest: int = 32768  # and at most so long for each partition;
    growth: int = 8  # in between, a round is this part of all events before it

    def plan(self, done: int, partitions: int) -> tuple[int, int]:
        """Return the lengths of the head and of the rest of the round that begins after `done` events."""
        if done < self.alone:
            return min(self.alone - done, PIECE), 0
        length = min(max(done // self.growth, self.shortest), self.longest * partitions)
        return self.head, length - self.head


class Coordinator:
    """Holds the model of a partitioned stream."""

    def __init__(self, workspace: Workspace, partitions: int, schedule: RoundSchedule | None = None) -> None:
        self.workspace, self.partitions, self.version = workspace, partitions, _LOADED
        self.schedule = schedule or RoundSchedule()
        self.change = ChangeTest()
        self.look_ahead: Callable[[], object] = lambda: None
        self.owners: dict[Block, int] = {}  # the server of each block of the model; none without servers

    @cached_property
    def _tracked(self) -> TrackedTables:
        """The tables at the last base, for workers outside this process."""
        return TrackedTables(self.workspace)

    def plan(self, done: int) -> tuple[int, int]:
        """Return the lengths of the head and of the rest of the round that begins after `done` events."""
        return self.schedule.plan(done - self.change.begin, self.partitions)

    def more_head(self, done: int, rest: int) -> int:
        """Return how many events of a round's `rest` belong to its head, because members are on trial.

        In chunks, these members would work until the end of the round. `done` events are learnt. At most
        about half of a round is its head.
        """
        searching = self.workspace.searching
        n_learnt = searching.n_learnt
        is_enough_left = (
            2 * rest >= sum(self.plan(done)) and rest * n_learnt >= _TRIALS_LEFT * TRIAL * searching.n_events
        )
        return min(REVIEW, rest) if is_enough_left and has_new_members(searching.search, n_learnt) else 0

    def cut(self, blocks: Sequence[EventBlock], begin: int = 0) -> list[Chunk]:
        """Return the chunks of the rest of a round: of the events of blocks from event `begin` on."""
        for block in blocks:
            self.workspace.layout.update(block)
        parts = self._parts(sum(map(len, blocks)) - begin)
        return [
            Chunk(take_events(blocks, begin + first, begin + last), number)
            for number, (first, last) in enumerate(parts)
        ]

    def chunks_of(self, file: TextFile, stretch: EventRange) -> list[Chunk]:
        """Return the chunks of a stretch of a file that workers read; none if they do not know the names."""
        seen = self.workspace.layout.seen(file.namespaces)
        if seen is None:
            return []
        parts = self._parts(len(stretch))
        return [
            Chunk(file.unread(stretch, first, last, seen), number)
            for number, (first, last) in enumerate(parts)
        ]

    def _parts(self, n: int) -> list[tuple[int, int]]:
        """Return the first event of each chunk of `n` events, and the first one after it."""
        ends = np.linspace(0, n, min(self.partitions, n) + 1).round().astype(int).tolist()
        return list(itertools.pairwise(ends))

    def shared_base(self) -> Base:
        """Return the base of the next chunks for workers that read the tables of this process."""
        base = self._base(0, {})
        self.version = base.version
        return base

    def next_base(self) -> Base:
        """Return the base of the next chunks, as its changes since the last base."""
        base = self._base(self.version, self._tracked.changed())
        for name, part in base.state.tables.items():
            self._tracked.rebase(name, part)
        self.version = base.version
        return base

    def full_base(self) -> Base:
        """Return the last base for a worker that has none."""
        fresh = TrackedTables(type(self.workspace)(configuration=self.workspace.configuration))
        base = self._base(0, self._tracked.differences(fresh))
        return base._replace(version=self.version)

    def _base(self, since: int, rows: dict[str, NDArray[np.int64]]) -> Base:
        workspace = self.workspace
        tables = tables_of(workspace)
        return Base(
            version=self.version + 1,
            since=since,
            control=control_of_search(workspace.searching, workspace.layout),
            gains=np.array(list(workspace.searching.screening.gains().values()), np.float64),
            state=SentState(
                {name: array.copy() for name, array in dense_arrays(workspace).items()},
                {name: take_rows(tables[name], changed) for name, changed in rows.items()},
            ),
            owners=[(*block, server) for block, server in self.owners.items()],
        )

    def merge(self, ends: Sequence[ChunkEnd], each: Each = map) -> None:
        """Merge the ends of the chunks of a round into the model; `each` may merge members in parallel."""
        with one_blas_thread():
            merged = merge_round(self.workspace, [end.state for end in ends], each=each)
        self._take(ends, merged)

    def take_shares(self, ends: Sequence[ChunkEnd], shares: Sequence[SentState]) -> None:
        """Take what servers have merged into the model; workers receive it from the servers."""
        merged = join_shares(self.workspace, shares)
        for name, part in merged.tables.items():
            self._tracked.rebase(name, part)
        self._take(ends, merged)

    def _take(self, ends: Sequence[ChunkEnd], merged: SentState) -> None:
        workspace = self.workspace
        load_merged(workspace, merged)
        workspace.searching.adopt([end.findings for end in ends], sum(len(end.outcomes) for end in ends))
