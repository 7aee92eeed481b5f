"""Propose configs in a way of your own: an oracle is one class, and `register` adds it.

This oracle is backward elimination: it begins with all pairs of namespaces, and proposes to leave one of them
out. `onlineauto --import examples/24_own_oracle.py ...` makes it known on the command line.
"""

from collections.abc import Sequence

from onlineauto import Workspace, datasets
from onlineauto.automl.config import Config
from onlineauto.automl.oracles import register
from onlineauto.automl.oracles.oracle import Oracle, SearchSpace
from onlineauto.automl.random_draw import RandomOrder
from onlineauto.engine.report.search_summary import search_summary
from onlineauto.testing import check_oracle


class Backward(Oracle):
    """Proposes the champion without one of its interactions."""

    name = "backward"

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return one challenger for each interaction that the champion has."""
        del draw  # nothing is random
        return [space.toggle(champion, pair) for pair in space.interactions_of(champion)]


check_oracle(Backward())
register(Backward())

search = Workspace(cb_explore_adf=True, live_configs=4, oracle_type="backward", lease=1000)
search.fit(datasets.path("cb-diamonds-u"))
for line in search_summary(search.searching):
    print(line)
