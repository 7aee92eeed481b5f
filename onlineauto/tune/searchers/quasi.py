"""``QuasiSearcher``: configs that cover the space more evenly than random ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import OptionError, install_hint
from onlineauto.tune.searchers.searcher import Searcher

if TYPE_CHECKING:
    from onlineauto.tune.spaces import Config, Space

_FIRST = 6
"""Binary logarithm of the size of the first block of points; each further block doubles their number."""
_SEQUENCES = ("sobol", "halton")


class QuasiSearcher(Searcher):
    """Proposes the points of a scrambled low-discrepancy sequence, from `scipy.stats.qmc`."""

    name = "quasi"
    several = True
    uses_prior = False

    def __init__(self, sequence: str = "sobol") -> None:
        if sequence not in _SEQUENCES:
            raise OptionError(f"sequence {sequence!r} is unknown; valid are {', '.join(_SEQUENCES)}")
        self.options = {"sequence": sequence}
        self._sequence = sequence

    def begin(self, space: Space, *, seed: int) -> None:  # noqa: D102
        super().begin(space, seed=seed)
        self._seed = seed % 2**64
        self._points = np.empty((0, max(space.width, 1)))

    def may_end(self, number: int) -> bool:  # noqa: ARG002, D102
        return False

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:  # noqa: ARG002, D102
        if number >= len(self._points):
            self._points = self._first_points(max(_FIRST, number.bit_length()))
        return self.space.decode(self._points[number])

    def on_change(self, before: Config, config: Config) -> bool:  # noqa: ARG002, D102
        return True

    def _first_points(self, power: int) -> np.ndarray:
        """Return the first 2**power points; more points begin with the same ones."""
        try:
            from scipy.stats import qmc
        except ImportError as error:
            raise OptionError(f"searcher='quasi' needs SciPy: {install_hint('tune')}") from error
        kind = qmc.Sobol if self._sequence == "sobol" else qmc.Halton
        engine = kind(self._points.shape[1], scramble=True, rng=np.random.default_rng(self._seed))
        return np.asarray(engine.random(2**power))
