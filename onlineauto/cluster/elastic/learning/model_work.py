"""The part of a worker: read events, list their cells, learn them from pulled weights, push the result."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.cluster.elastic.learning.cell_kernels import list_cells
from onlineauto.cluster.elastic.learning.combine_kernels import FIELDS
from onlineauto.cluster.elastic.learning.header import EVENTS, LOSS, SKIPPED, WEIGHTS, Header
from onlineauto.cluster.elastic.learning.rows import HEADER, Cells
from onlineauto.engine.loop.buffers import make_results
from onlineauto.engine.loop.working_memory import Parts, WorkingMemory
from onlineauto.features.records import make_stream
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.jit import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.elastic.learning.feed import Feed
    from onlineauto.features.block import Block
    from onlineauto.workspace.workspace import Workspace

__all__ = ["ModelWork"]


class _Part(NamedTuple):
    """A part of a tick: its events, the cells that they need, and how many lines were skipped."""

    events: list[Block]
    cells: NDArray[np.uint32]  # ascending
    skipped: int


class ModelWork:
    """Does parts of ticks on a scratch workspace, of which nothing lasts from one part to the next.

    Parameters
    ----------
    scratch : Workspace
        A workspace with the options of the model.
    feed : Feed
        Has the events.
    shift : int
        Number of low bits of a cell that say where in its block it is.
    """

    def __init__(self, scratch: Workspace, feed: Feed, shift: int) -> None:
        self._scratch, self._feed, self._shift = scratch, feed, shift
        cells, _, self._lanes = scratch.weights.shape
        self._known, self._found = np.zeros(cells, bool), np.empty(cells, np.uint32)
        self._memory = WorkingMemory(scratch.configuration, scratch.layout, live_configs=1)
        self._latest: tuple[tuple[int, int, int], list[_Part]] | None = None

    # -- what a part needs -----------------------------------------------------------------------------

    def wants(self, tick: int, rank: int, n: int) -> dict[int, Any] | None:
        """Return the cells that a rank's parts need, by block; None if the stream has no such tick."""
        parts = self._parts_of(tick, rank, n)
        if parts is None:
            return None
        together = np.unique(np.concatenate([np.zeros(0, np.uint32), *(part.cells for part in parts)]))
        return {HEADER: None} | {block: cells for block, cells, _ in self._by_block(together)}

    def _by_block(self, cells: NDArray[np.uint32]) -> list[tuple[int, NDArray[np.uint32], slice]]:
        """Return for each block the cells in it, of cells in ascending order, and where they are."""
        blocks, begins = np.unique(cells >> self._shift, return_index=True)
        mask = np.uint32((1 << self._shift) - 1)
        ends = [*begins[1:].tolist(), len(cells)][: len(blocks)]
        return [
            (int(block) + 1, cells[begin:end] & mask, slice(begin, end))
            for block, begin, end in zip(blocks.tolist(), begins.tolist(), ends, strict=True)
        ]

    def _parts_of(self, tick: int, rank: int, n: int) -> list[_Part] | None:
        if self._latest is not None and self._latest[0] == (tick, rank, n):
            return self._latest[1]
        self._feed.drop_before(tick - 2)  # no worker can be further behind
        texts = self._feed.parts_of(tick, rank, n)
        if texts is None:
            return None
        parts = self._read(texts)
        self._latest = (tick, rank, n), parts
        return parts

    def _read(self, texts: Sequence[bytes]) -> list[_Part]:
        """Read the events of consecutive parts at once, and cut them where the parts end."""
        found = Diagnostics()
        ends = np.cumsum([text.count(b"\n") for text in texts])
        events: list[list[Block]] = [[] for _ in texts]
        for block in self._scratch.read(b"".join(texts), diagnostics=found) if texts else ():
            lines = block.line_number[block.event_start[:-1]]
            cuts = [0, *np.searchsorted(lines, ends[:-1], side="right").tolist(), len(block)]
            for part, (begin, end) in enumerate(itertools.pairwise(cuts)):
                if end > begin:
                    events[part].append(block.head(end).tail(begin))
        skipped = [found.total, *[0] * len(texts)]
        return [_Part(each, self._cells_of(each), skipped[i]) for i, each in enumerate(events)]

    def _cells_of(self, blocks: Sequence[Block]) -> NDArray[np.uint32]:
        """Return the cells that events need, in ascending order."""
        n = 0
        for block in blocks:
            n = self._list(block, n)
        cells = np.sort(self._found[:n])
        self._known[cells] = False
        return cells

    def _list(self, block: Block, n: int) -> int:
        scratch, memory = self._scratch, self._memory
        layout, learner, searching = scratch.layout, scratch.learner, scratch.searching
        layout.update(block)
        memory.open_block(layout, block)
        stream = make_stream(block, np.zeros(len(block), bool))
        live, screen = searching.live_configs.arrays, searching.screening.screen
        given = Parts(learner.task, learner.rule, learner.model, live, screen)
        results = make_results(block, learner.task)
        context = memory.context(layout, given, block, stream, results)
        return list_cells(context.record, Sealed(stream).record, 0, len(block), self._known, self._found, n)

    # -- what a part does ------------------------------------------------------------------------------

    def compute(self, tick: int, rank: int, n: int, values: Mapping[int, Any]) -> dict[int, Any]:
        """Learn a rank's parts, each from the pulled weights; return what they have made of the blocks."""
        parts = self._parts_of(tick, rank, n)
        assert parts is not None, "only a tick that is there is pulled"
        wanted = np.unique(np.concatenate([np.zeros(0, np.uint32), *(part.cells for part in parts)]))
        pulled = np.empty((len(wanted), FIELDS * self._lanes), np.float32)
        for block, _, where in self._by_block(wanted):
            pulled[where] = values[block]
        header: Header = values[HEADER]
        headers, cells, learnt = [], [], []
        for part in parts:
            if part.events or part.skipped:
                headers.append(self._learn(part, header, pulled[np.searchsorted(wanted, part.cells)]))
                cells.append(part.cells)
                learnt.append(self._weights_of(part.cells))
        updates: dict[int, Any] = {HEADER: headers}
        if not cells:
            return updates
        cell, value = np.concatenate(cells), np.concatenate(learnt)
        order = np.argsort(cell >> self._shift, kind="stable")
        return updates | {
            block: Cells(local, value[order[where]]) for block, local, where in self._by_block(cell[order])
        }

    def _learn(self, part: _Part, header: Header, weights: NDArray[np.float32]) -> Header:
        """Learn a part from a header and the weights of its cells; return the header that it leaves."""
        model, account = self._scratch.learner.model, header.account.copy()
        model.weights[part.cells, :FIELDS] = weights.reshape(-1, FIELDS, self._lanes)
        header.write_to(model)
        for block in part.events:
            outcomes = self._scratch.learn_block(block)
            account[EVENTS] += len(block)
            account[WEIGHTS] += outcomes.weight[outcomes.labelled].sum(dtype=np.float64)
            account[LOSS] += outcomes.loss.sum(dtype=np.float64)
        account[SKIPPED] += part.skipped
        return Header.of(model, account)

    def _weights_of(self, cells: NDArray[np.uint32]) -> NDArray[np.float32]:
        weights = self._scratch.weights
        return weights[cells, :FIELDS].reshape(-1, FIELDS * self._lanes)
