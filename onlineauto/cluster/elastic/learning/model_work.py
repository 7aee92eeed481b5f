"""The work of a worker: read events, list their cells, learn from pulled weights, push the result."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.cluster.elastic.learning.cell_kernels import list_cells, put_cells, take_cells
from onlineauto.cluster.elastic.learning.combine_kernels import FIELDS
from onlineauto.cluster.elastic.learning.header import EVENTS, LOSS, SKIPPED, WEIGHTS, Header
from onlineauto.cluster.elastic.learning.rows import HEADER, Cells
from onlineauto.engine.loop.buffers import make_results
from onlineauto.engine.loop.wide_events import without_widest
from onlineauto.engine.loop.working_memory import Parts, WorkingMemory
from onlineauto.features.records import make_stream
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.jit import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.elastic.learning.feed import TickFeed
    from onlineauto.features.block import Block
    from onlineauto.workspace.workspace import Workspace


class _Part(NamedTuple):
    """A part of a tick: its events, the cells that they need, and the number of skipped lines."""

    events: list[Block]
    cells: NDArray[np.uint32]
    skipped: int


class _Tick(NamedTuple):
    """The parts of a rank in a tick, and the cells that they need together, by block."""

    parts: list[_Part]
    cells: NDArray[np.uint32]
    blocks: list[tuple[int, slice]]


class ModelWork:
    """Learns parts of ticks on a scratch workspace, whose state is replaced for each part.

    Parameters
    ----------
    scratch : Workspace
        A workspace with the options of the model.
    feed : Feed
        The events.
    shift : int
        Number of low bits of a cell that are its index in its block.
    """

    def __init__(self, scratch: Workspace, feed: TickFeed, shift: int) -> None:
        self._scratch, self._feed, self._shift = scratch, feed, shift
        cells, self._lanes = scratch.learner.model.weights.shape
        self._seen, self._stamp = np.zeros(cells, np.uint32), 0
        self._found, self._row = np.empty(cells, np.uint32), np.empty(cells, np.uint32)
        self._memory = WorkingMemory(
            scratch.configuration,
            scratch.layout,
            semantics=scratch.semantics,
            live_configs=1,
            decides=True,
        )
        self._latest: tuple[tuple[int, int, int], _Tick] | None = None

    # -- the needs of a part ---------------------------------------------------------------------------

    def needed_keys(self, tick: int, rank: int, n: int) -> dict[int, Any] | None:
        """Return the cells that worker `rank` of `n` needs at a tick, by block; None after the last tick."""
        needed = self._tick(tick, rank, n)
        if needed is None:
            return None
        local = self._local_indices(needed.cells)
        return {HEADER: None} | {block: local[where] for block, where in needed.blocks}

    def _local_indices(self, cells: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the indices of cells in their blocks."""
        return cells & np.uint32((1 << self._shift) - 1)

    def _by_block(self, cells: NDArray[np.uint32]) -> tuple[NDArray[np.int64], list[tuple[int, slice]]]:
        """Return a stable order of cells by block, and the slice of each block in this order."""
        block = cells >> self._shift
        if len(self._seen) >> self._shift <= 1 << 16:
            block = block.astype(np.uint16)  # NumPy sorts 16 bits much faster
        order = np.argsort(block, kind="stable")
        counts = np.bincount(block)
        ends = np.cumsum(counts)
        present = np.flatnonzero(counts)
        where = [(int(each) + 1, slice(int(ends[each] - counts[each]), int(ends[each]))) for each in present]
        return order, where

    def _tick(self, tick: int, rank: int, n: int) -> _Tick | None:
        if self._latest is not None and self._latest[0] == (tick, rank, n):
            return self._latest[1]
        self._feed.drop_before(tick - 2)  # no worker can lag further behind
        texts = self._feed.parts_of(tick, rank, n)
        if texts is None:
            return None
        parts = self._read(texts)
        together = self._union([part.cells for part in parts])
        order, blocks = self._by_block(together)
        result = _Tick(parts, together[order], blocks)
        self._latest = (tick, rank, n), result
        return result

    def _union(self, cells: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
        """Return the cells that are in any of the arrays, each once."""
        if len(cells) == 1:
            return cells[0]
        known = np.zeros(len(self._seen), bool)
        for each in cells:
            known[each] = True
        return np.flatnonzero(known).astype(np.uint32)

    def _read(self, texts: Sequence[bytes]) -> list[_Part]:
        """Read the events of consecutive parts at once, and divide them at the ends of the parts."""
        diagnostics = Diagnostics()
        ends = np.cumsum([text.count(b"\n") for text in texts])
        events: list[list[Block]] = [[] for _ in texts]
        for block in self._scratch.read(b"".join(texts), diagnostics=diagnostics) if texts else ():
            lines = block.line_number[block.event_start[:-1]]
            cuts = [0, *np.searchsorted(lines, ends[:-1], side="right").tolist(), len(block)]
            for part, (begin, end) in enumerate(pairwise(cuts)):
                if end > begin:
                    events[part].append(block.head(end).tail(begin))
        skipped = [diagnostics.total, *[0] * len(texts)]
        return [_Part(each, self._cells_of(each), skipped[i]) for i, each in enumerate(events)]

    def _cells_of(self, blocks: Sequence[Block]) -> NDArray[np.uint32]:
        """Return the cells that events need, each once."""
        n, self._stamp = 0, self._stamp + 1
        for block in blocks:
            n = self._list(block, n)
        return self._found[:n].copy()

    def _list(self, block: Block, n: int) -> int:
        scratch, memory = self._scratch, self._memory
        layout, learner, searching = scratch.layout, scratch.learner, scratch.searching
        layout.update(block)
        memory.open_block(layout, block)
        stream = make_stream(block, np.zeros(len(block), bool))
        live, screen = searching.live_configs.arrays, searching.screening.screen
        parts = Parts(learner.task, learner.rule, learner.model, live, screen)
        results = make_results(block, learner.task)
        context, sizes = memory.context(layout, parts, block, stream, results)
        if sizes.wide and len(block) > 1:
            for event in range(len(block)):
                n = self._list(block.tail(event).head(1), n)
            return n
        if sizes.wide:
            context = without_widest(context, stream, 0, sizes, memory.limit)
        return list_cells(
            context.record, Sealed(stream).record, len(block), self._seen, self._stamp, self._found, n
        )

    # -- the learning of a part ------------------------------------------------------------------------

    def compute(self, tick: int, rank: int, n: int, values: Mapping[int, Any]) -> dict[int, Any]:
        """Learn a rank's parts, each from the pulled weights; return the changed cells by block."""
        needed = self._tick(tick, rank, n)
        assert needed is not None, "only an existing tick is pulled"
        header: Header = values[HEADER]
        pulled = np.empty((len(needed.cells), FIELDS * self._lanes), np.float32)
        for block, where in needed.blocks:
            pulled[where] = values[block]
        self._row[needed.cells] = np.arange(len(needed.cells), dtype=np.uint32)
        parts = [part for part in needed.parts if part.events or part.skipped]
        cells = np.concatenate([np.zeros(0, np.uint32), *(part.cells for part in parts)])
        learnt = np.empty((len(cells), FIELDS * self._lanes), np.float32)
        headers, at, model = [], 0, self._scratch.learner.model
        for part in parts:
            put_cells(model, part.cells, pulled, self._row[part.cells])
            headers.append(self._learn(part, header))
            take_cells(model, part.cells, learnt[at : at + len(part.cells)])
            at += len(part.cells)
        order, blocks = self._by_block(cells)
        local = self._local_indices(cells)[order]
        learnt = learnt[order]
        return {HEADER: headers} | {block: Cells(local[where], learnt[where]) for block, where in blocks}

    def _learn(self, part: _Part, header: Header) -> Header:
        """Learn a part, whose cells are in the table, from a header; return the header after it."""
        model, account = self._scratch.learner.model, header.account.copy()
        header.write_to(model)
        for block in part.events:
            outcomes = self._scratch.learn_block(block)
            account[EVENTS] += len(block)
            account[WEIGHTS] += outcomes.weight[outcomes.labelled].sum(dtype=np.float64)
            account[LOSS] += outcomes.loss.sum(dtype=np.float64)
        account[SKIPPED] += part.skipped
        return Header.of(model, account)
