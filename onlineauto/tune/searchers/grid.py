"""``GridSearcher``: every combination of a few values of each parameter."""

from __future__ import annotations

from itertools import islice, product
from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.tune.searchers.searcher import Searcher

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from onlineauto.tune.spaces import Config, Space


class GridSearcher(Searcher):
    """Proposes each combination once, and then None. The last parameter changes fastest."""

    name = "grid"
    several = True
    uses_prior = False
    needs_space = True
    ends = True

    def __init__(self, points: int = 5) -> None:
        if points < 1:
            raise OptionError(f"points = {points}: a grid needs at least one value of each parameter")
        self.options = {"points": points}
        self._points = points

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._configs: list[Config] = []
        self._rest = self._combinations()

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: ARG002, D102
        self._configs.extend(islice(self._rest, number + 1 - len(self._configs)))
        return dict(self._configs[number]) if number < len(self._configs) else None

    def may_end(self, number: int) -> bool:  # noqa: D102
        return self.propose(number, self._draw.at(number)) is None

    def _combinations(self) -> Iterator[Config]:
        """Yield all configs, each once; a parameter that does not exist adds no combinations."""
        grids = {name: parameter.grid(self._points) for name, parameter in self.space.parameters.items()}
        for values in product(*grids.values()):
            config = dict(zip(grids, values, strict=True))
            absent = self._absent(config)
            if all(config[name] == grids[name][0] for name in absent):
                yield {name: value for name, value in config.items() if name not in absent}

    def _absent(self, config: Config) -> set[str]:
        """Return the parameters that do not exist, including those that depend on an absent parameter."""
        present = dict(config)
        while absent := [name for name in present if not self.space.exists(name, present)]:
            for name in absent:
                del present[name]
        return config.keys() - present.keys()
