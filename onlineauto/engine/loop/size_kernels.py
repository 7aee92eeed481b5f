"""The size of the largest action of a block, which buffers must hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.engine.event.event_kernels import open_event
from onlineauto.engine.event.example_kernels import open_action
from onlineauto.engine.event.pass_kernels import run_on
from onlineauto.features._kernels import forget
from onlineauto.features.product_kernels import count_all
from onlineauto.jit import entry_kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.engine.event.state import Context
    from onlineauto.features.records import Stream


@entry_kernel
def largest_example(context: Context, stream: Stream) -> int:
    """Return the number of features of the largest action of a block, with those of all interactions.

    If events have slots, each slot counts as an event, as in the loop.
    """
    run = run_on(context, stream)
    largest = 0
    for event in range(len(run.stream.holdout)):
        short_loop()
        actions, _ = open_event(run, event)
        for action in range(actions.n):
            short_loop()
            groups, _, _ = open_action(run, actions, action)
            n = max(count_all(run.interactions, run.scratch), count_all(run.again, run.scratch))
            n += count_all(run.screen.interactions, run.scratch)
            for group in range(groups):
                short_loop()
                n += run.scratch.groups[group].end - run.scratch.groups[group].start
            largest = max(largest, n)
            forget(run.scratch, actions.n_shared, groups)
        forget(run.scratch, 0, actions.n_shared)
    return largest
