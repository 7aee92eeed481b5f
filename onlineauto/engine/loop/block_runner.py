"""Block runner: runs the loop over block after block; the search decides whenever the loop stops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from onlineauto.engine.event.state import ASIDE, BLOCK_END, EVENT, NOTICED, SIGNAL, SIMPLE, STREAM
from onlineauto.engine.loop.buffers import make_outcomes, make_results
from onlineauto.engine.loop.ccb_slots import SlotFinder
from onlineauto.engine.loop.working_memory import Parts, WorkingMemory
from onlineauto.features.records import make_stream

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.engine.event.state import Live, Screen
    from onlineauto.engine.loop.learner import Learner
    from onlineauto.engine.loop.semantics import Semantics
    from onlineauto.features.block import Block
    from onlineauto.features.layout import Layout
    from onlineauto.features.stored import Stored
    from onlineauto.learners._kernels import Model
    from onlineauto.options import Configuration

__all__ = ["BlockRunner", "Decides"]


class _HasArrays(Protocol):
    arrays: Live


class _HasScreen(Protocol):
    screen: Screen


class Decides(Protocol):
    """Decides whenever the loop stops: a search or a replay."""

    @property
    def live_configs(self) -> _HasArrays:
        """The live configs."""

    @property
    def screening(self) -> _HasScreen:
        """The estimated gains of interactions."""

    @property
    def replays(self) -> bool:
        """True if the decisions are those of a journal."""

    def prepare(self, model: Model) -> None:
        """Have the machine code of all later decisions ready, so that no later event waits for a compiler."""

    def open_block(self) -> None:
        """Prepare for a block."""

    def stop(self, begin: int, end: int) -> int:
        """Return the event before which the loop must stop, of the events [begin, end) of a block."""

    def answer(
        self,
        cursor: NDArray[np.int64],
        block: Block,
        model: Model,
        *,
        event: int,
        through: int,
        random: NDArray[np.uint64] | None = None,
    ) -> None:
        """Decide on the signal of the `cursor`, and apply the decisions to the `model`.

        `event` is the event of the block at which the loop stopped, `through` the number of events since the
        last stop.
        """


class BlockRunner:
    """Runs the loop over the blocks of a stream.

    Parameters
    ----------
    configuration : Configuration
        The options.
    layout : Layout
        Maps namespaces to groups of features.
    learner : Learner
        The rule and the weights.
    searching : Decides
        Decides whenever the loop stops.
    semantics : Semantics
        Names the loop, and says what predictions change.

    Attributes
    ----------
    slot_finder : SlotFinder
        Finds CCB slots.
    """

    def __init__(
        self,
        configuration: Configuration,
        *,
        layout: Layout,
        learner: Learner,
        searching: Decides,
        semantics: Semantics,
    ) -> None:
        self._layout, self._learner, self._searching = layout, learner, searching
        self._semantics = semantics
        self.slot_finder = SlotFinder(configuration)
        self._prepared = False
        self._memory = WorkingMemory(configuration, layout, live_configs=learner.shape.configs)

    def state(self) -> dict[str, Any]:
        """Return the state, as `restore` takes it."""
        return self.slot_finder.state()

    def restore(self, stored: Stored) -> None:
        """Restore a state that was stored with the same options.

        Raises
        ------
        ValueError
            The state is of other options.
        """
        self.slot_finder.restore(stored)

    def parts(self) -> Parts:
        """Return all that the loop works with now."""
        learner, searching = self._learner, self._searching
        return Parts(
            learner.task,
            learner.rule,
            learner.model,
            searching.live_configs.arrays,
            searching.screening.screen,
        )

    def learn(self, block: Block, holdout: NDArray[np.bool_] | None = None) -> Outcomes:
        """Predict the events of a block, learn all but those held out, and return the outcomes."""
        return self._run(block, holdout, STREAM)

    def notice(self, block: Block) -> Outcomes:
        """Predict the events of a block and return the outcomes; learn nothing but their namespaces.

        That is how Vowpal Wabbit predicts; see `Semantics.notices_predicted`.
        """
        searches = self._searching.live_configs.arrays.searching and not self._searching.replays
        return self._run(block, None, NOTICED if searches else ASIDE)

    def _run(self, block: Block, holdout: NDArray[np.bool_] | None, standing: int) -> Outcomes:
        """Run the loop over a block of this `standing`; the search does not see events that are `ASIDE`."""
        layout, searching, task = self._layout, self._searching, self._learner.task
        layout.update(block)
        slots = self.slot_finder.find(block, layout) if task.slots else None
        n = len(block if slots is None else slots)
        held = np.zeros(len(block), bool) if holdout is None else np.ascontiguousarray(holdout, bool)
        if slots is not None:
            held = held[slots.event]
        results = make_results(block, task, slots=slots, aside=standing != STREAM)
        decides = searching.live_configs.arrays.searching and standing != ASIDE
        if decides:
            if not self._prepared:
                searching.prepare(self._learner.model)
                self._prepared = True
            searching.open_block()
        stream = make_stream(block, held, slots)
        self._memory.open_block(layout, block)
        random = task.exploration.random if self._semantics.search_draws_with_explorer else None
        cursor = np.zeros(4, np.int64)
        while True:
            context = self._memory.context(layout, self.parts(), block, stream, results)
            begin = int(cursor[EVENT])
            stop = searching.stop(begin, n) if decides else n
            self._semantics.run_events(context.record, stream, results, cursor, stop, standing)
            if not decides:
                break
            at = int(cursor[EVENT])
            through = at - begin if standing == STREAM else 0
            event = at if slots is None or at == n else int(slots.event[at])
            model = self._learner.model
            searching.answer(cursor, block, model, event=event, through=through, random=random)
            if cursor[SIGNAL] == BLOCK_END and cursor[EVENT] == n:
                break
        return make_outcomes(block, held, results, simple=task.shape == SIMPLE, slots=slots)
