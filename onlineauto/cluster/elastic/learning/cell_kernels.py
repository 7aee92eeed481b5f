"""List the cells of the weight table that a part of a block needs, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.event.event_kernels import open_event
from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.features._kernels import forget
from onlineauto.features.product_kernels import cross_all, list_linear
from onlineauto.features.records import Listing
from onlineauto.jit import entry_kernel, short_loop

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.engine.event.state import Context
    from onlineauto.features.records import Stream


@entry_kernel
def list_cells(
    context: Context,
    stream: Stream,
    first: int,
    last: int,
    known: NDArray[np.bool_],
    found: NDArray[np.uint32],
    n: int,
) -> int:
    """Append to the `n` cells found those of events [first, last) that are not `known`; return their number.

    The cells of all actions count, since all are scored, with those of the interactions.
    """
    run, buffers = run_on(context, stream), context.buffers
    listing = Listing(buffers.cell, buffers.value, run.task.mask)
    for event in range(first, last):
        short_loop()
        actions, _ = open_event(run, event)
        for action in range(actions.n):
            short_loop()
            groups, _, _ = open_action(run, actions, action)
            n_shared, features = actions.n_shared, run.stream.features
            linear = list_linear(run.layout, run.scratch, features, n_shared, groups, listing)
            listed, _ = cross_all(run.interactions, run.scratch, features, listing, buffers.runs, linear)
            for i in range(listed):
                short_loop()
                cell = buffers.cell[i]
                if not known[cell]:
                    known[cell] = True
                    found[n] = cell
                    n += 1
            forget(run.scratch, n_shared, groups)
        forget(run.scratch, 0, actions.n_shared)
    return n
