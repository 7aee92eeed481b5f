"""Scenarios of the simulator that Vowpal Wabbit's tests have numbers for.

Source: VW ``core/tests/automl_test.cc`` and ``automl_weights_test.cc``. Not among them: those that save and
load, and the one with an explorer that we do not have (``--bag``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from tests.automl_simulator.learners import ExactLearner, Snapshot, VwLearner
from tests.automl_simulator.simulator import Simulator

BASE = "--cb_explore_adf --epsilon 0.2 --random_seed 5"
"""Flags of all scenarios."""

POPULAR = "--priority_type favor_popular_namespaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A scenario: the options of a learner, and the events and changes of the simulator.

    Attributes
    ----------
    flags : str
        Its options.
    events : tuple of int
        When to look at it; the last one is its end.
    seed : int
        The simulator's.
    swap_after : tuple of int
        Events after which tastes turn round.
    named_actions : bool
        Whether the articles' namespace has a name.
    """

    flags: str
    events: tuple[int, ...]
    seed: int = 10
    swap_after: tuple[int, ...] = ()
    named_actions: bool = True

    def simulator(self) -> Simulator:
        """Return a new simulator of this scenario."""
        return Simulator(self.seed, named_actions=self.named_actions)


SHORT = f"{BASE} --automl 3 {POPULAR} --default_lease 10"
LONG = f"{BASE} --automl 3 {POPULAR} --default_lease 500 --noconstant"
_SURE = "--fixed_significance_level"

FIFTEEN = Life(flags=f"{SHORT} {_SURE} --oracle_type rand", events=(15, 100))
WEIGHTS = Life(flags=f"{SHORT} --oracle_type rand", events=(10, 1331, 3000))
RAND = Life(
    flags=f"{LONG} {_SURE} --oracle_type rand", events=(930, 931, 1000), seed=85, swap_after=(200, 500)
)
ONE_DIFF = Life(
    flags=f"{SHORT} {_SURE} --noconstant", events=(644, 645, 646, 1000), seed=88, swap_after=(500,)
)
INCLUSION = Life(
    flags=f"{LONG} {_SURE} --oracle_type one_diff_inclusion",
    events=(4130, 4131, 4132, 4136),
    seed=85,
    swap_after=(200, 500),
)
CUBIC = Life(flags=f"{LONG} {_SURE} --oracle_type qbase_cubic", events=(400,), seed=88, swap_after=(200,))


@cache
def lived(life: Life) -> tuple[list[float], dict[int, Snapshot]]:
    """Run exact mode once; return the average rewards, and a snapshot after each of `life.events`."""
    learner, simulator = ExactLearner(life.flags), life.simulator()
    seen: dict[int, Snapshot] = {}

    def look(event: int) -> None:
        seen[event] = learner.snapshot()

    hooks = {event: partial(look, event) for event in life.events}
    simulator.run(learner, max(life.events), swap_after=life.swap_after, hooks=hooks)
    return simulator.rates, seen


def vw_lived(life: Life, events: int, *, directory: Path) -> tuple[list[float], Snapshot]:
    """Run VW for the first `events` events; return the average rewards and a snapshot at the end."""
    learner, simulator = VwLearner(life.flags, directory=directory), life.simulator()
    simulator.run(learner, events, swap_after=life.swap_after)
    return simulator.rates, learner.snapshot()
