"""List the cells of the weight table that events need, each once; copy cells from and to the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.event.event_kernels import open_event
from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.features.group_kernels import forget
from onlineauto.features.product_kernels import cross_product, is_linear, look_up
from onlineauto.features.records import Listing
from onlineauto.jit import entry_kernel, inline_kernel, short_loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.records.loop import Context, LoopRun
    from onlineauto.features.records import Stream
    from onlineauto.learners.gradient_kernels import Model


@inline_kernel
def _is_shared(run: LoopRun, product: int, n_shared: int) -> bool:
    """Return whether all factors of a product are groups of the shared line; `look_up` was called before."""
    interactions = run.interactions
    for k in range(interactions.start[product], interactions.start[product + 1]):
        short_loop()
        if run.scratch.places[interactions.factor[k]].group >= n_shared:
            return False
    return True


@inline_kernel
def _list_linear(run: LoopRun, n_shared: int, groups: int, is_repeated: bool, listing: Listing) -> int:
    """List the cells of single features of groups, those of the shared line once; return their number."""
    n, features = 0, run.stream.features
    for group in range(n_shared if is_repeated else 0, groups):
        short_loop()
        if is_linear(run.layout, run.scratch, group, n_shared):
            for i in range(run.scratch.groups[group].start, run.scratch.groups[group].end):
                short_loop()
                listing.cell[n] = features[i].hash & listing.mask
                n += 1
    return n


@entry_kernel
def list_cells(
    context: Context,
    stream: Stream,
    last: int,
    stamps: NDArray[np.uint32],
    stamp: int,
    listed_cells: NDArray[np.uint32],
    n: int,
) -> int:
    """Append the cells of the first `last` events to the `n` listed cells; return the new number.

    A cell whose entry in `stamps` equals `stamp` is listed already. The cells include interactions and all
    actions, because all actions are scored. Cells of the shared line alone are the same for all actions, so
    they are listed once, unless an action has features in a namespace of the shared line.
    """
    run, buffers = run_on(context, stream), context.buffers
    listing, interactions = Listing(buffers.cell, buffers.value, run.task.mask), run.interactions
    for event in range(last):
        short_loop()
        actions, _ = open_event(run, event)
        is_repeated, n_shared = False, actions.n_shared
        for action in range(actions.n):
            short_loop()
            groups, _, merged = open_action(run, actions, action)
            is_repeated = is_repeated and not merged
            listed = _list_linear(run, n_shared, groups, is_repeated, listing)
            for product in range(len(interactions.start) - 1):
                short_loop()
                if look_up(interactions, run.scratch, product):
                    if is_repeated and _is_shared(run, product, n_shared):
                        continue
                    order = interactions.start[product + 1] - interactions.start[product]
                    listed = cross_product(run.scratch, run.stream.features, order, listing, listed)
            for i in range(listed):
                short_loop()
                cell = buffers.cell[i]
                if stamps[cell] != stamp:
                    stamps[cell] = stamp
                    listed_cells[n] = cell
                    n += 1
            is_repeated = (action == 0 and not merged) or is_repeated
            forget(run.scratch, n_shared, groups)
        forget(run.scratch, 0, n_shared)
    return n


@entry_kernel
def take_cells(model: Model, cells: NDArray[np.uint32], numbers: NDArray[np.float32]) -> None:
    """Copy the first numbers of cells of a model to `numbers`, one number per column."""
    lanes = model.weights.shape[1]
    for i in range(len(cells)):
        short_loop()
        for k in range(numbers.shape[1]):
            short_loop()
            numbers[i, k] = model.weights[cells[i], k] if k < lanes else model.rows[cells[i], k - lanes]


@entry_kernel
def put_cells(
    model: Model,
    cells: NDArray[np.uint32],
    values: NDArray[np.float32],
    rows: NDArray[np.uint32],
) -> None:
    """Copy rows of `values` to the first numbers of cells of a model."""
    lanes = model.weights.shape[1]
    for i in range(len(cells)):
        short_loop()
        for k in range(values.shape[1]):
            short_loop()
            if k < lanes:
                model.weights[cells[i], k] = values[rows[i], k]
            else:
                model.rows[cells[i], k - lanes] = values[rows[i], k]
