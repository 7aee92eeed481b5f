"""``AutoSearcher``: the default, which proposes configs by a Gaussian process or by TPE."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError
from onlineauto.tune.searchers.gp import GpSearcher
from onlineauto.tune.searchers.searcher import Searcher
from onlineauto.tune.searchers.tpe import TpeSearcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from onlineauto.tune.spaces import Config, Space

_LOG = logging.getLogger("onlineauto")


class AutoSearcher(Searcher):
    """Proposes configs by a Gaussian process where it needs fewer trials than TPE, and by TPE elsewhere.

    The Gaussian process proposes the first `most` trials of a space of numbers without conditions and without
    priors, while all results are of one objective and of one resource, and no scheduler compares trials at
    rungs.
    """

    name = "auto"
    several = True

    def __init__(self, most: int = 200) -> None:
        if most < 0:
            raise OptionError(f"most = {most}: valid are whole numbers of at least 0")
        self.options = {"most": most}
        self._most = most

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._tpe, self._process = TpeSearcher(), GpSearcher()
        self._tpe.begin(space, seed=seed)
        self._process.begin(space, seed=seed)
        self._n_trials, self._levels = 0, set[int]()
        self._is_logged = False
        self._suits = not space.has_prior and not any(
            parameter.categories or parameter.when for parameter in space.parameters.values()
        )

    @property
    def chosen(self) -> Searcher:
        """The searcher of the next proposal."""
        suits = self._suits and self._n_trials < self._most and len(self._levels) < 2 and not self.lowest
        return self._process if suits else self._tpe

    def on_ask(self, config: Config) -> None:  # noqa: D102
        if not self._is_logged:  # here and not in `propose`, which copies of the searcher call too
            self._is_logged = True
            until = f"gp until trial {self._most}, then tpe," if self.chosen is self._process else "tpe"
            _LOG.info("searcher 'auto' chooses %s for this space", until)
        self._n_trials += 1
        for searcher in (self._tpe, self._process):
            searcher.begin_trial(config)

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: D102
        self._tpe.on_change(before, config)
        return self._process.on_change(before, config)

    def on_result(self, config: Config, resource: int, loss: float) -> None:  # noqa: D102
        self._levels.add(resource)
        for searcher in (self._tpe, self._process):
            searcher.on_result(config, resource, loss)

    def on_losses(self, config: Config, resource: int, losses: Sequence[float]) -> None:  # noqa: D102
        self._suits = False
        self._tpe.on_losses(config, resource, losses)

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: D102
        self._tpe.lowest = self.lowest
        return self.chosen.propose(number, rng)

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return {
            "tpe": self._tpe.remember(),
            "gp": self._process.remember(),
            "trials": self._n_trials,
            "levels": sorted(self._levels),
            "suits": self._suits,
        }

    def recall(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._tpe.recall(state["tpe"])
        self._process.recall(state["gp"])
        self._n_trials, self._levels = state["trials"], set(state["levels"])
        self._suits = state["suits"]
