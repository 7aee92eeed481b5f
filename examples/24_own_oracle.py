"""Search in a way of your own: an oracle is one class, which proposes configs, and `register` adds it.

This oracle is backward elimination: it begins with all pairs of namespaces, and proposes to leave one of them
out. `onlineauto --import examples/24_own_oracle.py ...` makes it known on the command line.

Next: 25 has a scheduler and a searcher of your own.
"""

from collections.abc import Sequence
from typing import Any

from onlineauto import AutoML, datasets
from onlineauto.automl.oracles import register
from onlineauto.automl.oracles.oracle import Oracle
from onlineauto.testing import check_oracle


class Backward(Oracle):
    """Proposes the champion without one of its interactions."""

    name = "backward"

    def propose(self, champion: Any, *, space: Any, draw: Any) -> Sequence[Any]:
        """Return one challenger for each interaction that the champion has."""
        del draw  # nothing is random
        return [space.toggle(champion, pair) for pair in space.interactions_of(champion)]


check_oracle(Backward())
register(Backward())

bandit = AutoML(live_configs=4, oracle_type="backward", default_lease=1000).fit(
    datasets.path("cb-diamonds-u")
)
print(bandit.report())
