"""``RandomSearcher``: configs that are independent and uniform in the code of the space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.tune.searchers.searcher import Searcher

if TYPE_CHECKING:
    import numpy as np

    from onlineauto.tune.spaces import Config

__all__ = ["RandomSearcher"]


class RandomSearcher(Searcher):
    """Proposes independent configs."""

    name = "random"

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: ARG002, D102
        return self.space.decode(rng.random(self.space.width))
