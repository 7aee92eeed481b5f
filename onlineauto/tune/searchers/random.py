"""``RandomSearcher``: configs that are independent and uniform in the code of the space."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.tune.searchers.searcher import Searcher

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np

    from onlineauto.tune.spaces import Config, Space


class RandomSearcher(Searcher):
    """Proposes independent configs; in a small space, it prefers configs that were not tried yet."""

    name = "random"
    several = True

    def __init__(self, grid: Sequence[str] = ()) -> None:
        """Let the values of these parameters, which are choices, take turns in all combinations."""
        self._grid = [*grid]
        self.options = {"grid": self._grid} if grid else {}

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._tried: dict[tuple[Any, ...], None] = {}

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: D102
        config = self.draw_untried(self._tried, rng)
        for name in self._grid:
            values = self.space.parameters[name].grid(1)
            number, index = divmod(number, len(values))
            config[name] = values[index]
        return config

    def on_ask(self, config: Config) -> None:  # noqa: D102
        if self.is_small:
            self._tried[tuple(config.items())] = None

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: D102
        self._tried.pop(tuple(before.items()), None)
        self.on_ask(config)
        return True

    def remember(self) -> dict[str, Any]:  # noqa: D102
        return {"tried": [dict(config) for config in self._tried]} if self.is_small else {}

    def recall(self, state: Mapping[str, Any]) -> None:  # noqa: D102
        self._tried = {tuple(config.items()): None for config in state.get("tried", ())}
