"""``CmaesSearcher``: evolves a normal distribution over the space towards good configs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import OptionError, install_hint
from onlineauto.tune.searchers.observations import Observations
from onlineauto.tune.searchers.searcher import Searcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.spaces import Config, Space


class CmaesSearcher(Searcher):
    """Proposes configs by CMA-ES, for many trials in spaces of numbers.

    The package ``cmaes`` does the work. A generation consists of the next trials that have a loss, in the
    order in which they received it, so parallel trials do not wait for each other. When the distribution has
    become too narrow, it begins again with twice the population. Words are coded as one number, like whole
    numbers, so a space with many words is searched better by ``tpe``.
    """

    name = "cmaes"

    def __init__(self, sigma: float = 0.25, population: int | None = None) -> None:
        if not 0 < sigma <= 1 or (population is not None and population < 2):
            raise OptionError(
                f"sigma = {sigma}, population = {population}: valid are a part of the range, and 2 or more"
            )
        self.options = {"sigma": sigma, "population": population}
        self._sigma, self._population = sigma, population

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._observations = Observations()
        self._waiting: list[int] = []
        self._begin_distribution()

    def _begin_distribution(self) -> None:
        self._generations: list[list[list[float]]] = []
        self._distribution = self._new_distribution(self._population)

    def _new_distribution(self, population: int | None) -> Any:
        try:
            import cmaes
        except ImportError as error:
            raise OptionError(f"searcher='cmaes' needs the package cmaes: {install_hint('tune')}") from error
        width = max(self.space.width, 2)
        bounds = np.tile([0.0, 1.0], (width, 1))
        mean = np.full(width, 0.5)
        for name, parameter in self.space.parameters.items():
            if parameter.prior is not None:
                mean[self.space.blocks[name]] = parameter.encode(parameter.prior)
        return cmaes.CMA(mean, self._sigma, bounds, population_size=population)

    def on_ask(self, config: Config) -> None:  # noqa: D102
        self._observations.begin(config)

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: D102
        self._observations.replace(before, config)
        return True

    def on_result(self, config: Config, resource: int, loss: float) -> None:  # noqa: D102
        is_first = not self._observations.levels[self._observations.rows[tuple(config.items())]]
        row = self._observations.result(config, resource, loss)
        if is_first:
            self._waiting.append(row)
        if len(self._waiting) >= self._distribution.population_size:
            rows, self._waiting = self._observations.order(self._waiting), []
            self._learn([self._code(row) for row in rows])

    def _code(self, row: int) -> list[float]:
        """Return the code of a config; CMA-ES needs two numbers, so a single one gets a random second one."""
        code: list[float] = self.space.encode(self._observations.configs[row]).tolist()
        return code if len(code) > 1 else [*code, float(np.random.default_rng(row).random())]

    def _learn(self, codes: Sequence[list[float]]) -> None:
        """Learn a generation, the best first; ranks stand for losses, which CMA-ES only compares."""
        self._generations.append(list(codes))
        self._distribution.tell([(np.array(code), float(rank)) for rank, code in enumerate(codes)])
        if self._distribution.should_stop():
            self._distribution = self._new_distribution(2 * self._distribution.population_size)

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: ARG002, D102
        self._distribution.reseed_rng(int(rng.integers(2**32)))
        return self.space.decode(self._distribution.ask()[: self.space.width])

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return {
            **self._observations.state_dict(),
            "waiting": list(self._waiting),
            "generations": [list(codes) for codes in self._generations],
        }

    def recall(self, remembered: Mapping[str, Any]) -> None:  # noqa: D102
        self._observations.load_state_dict(remembered)
        self._begin_distribution()
        for codes in remembered["generations"]:
            self._learn(codes)
        self._waiting = list(remembered["waiting"])
