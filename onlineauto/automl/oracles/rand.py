"""``--oracle_type rand``: all neighbours of the champion, shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class Rand(Oracle):
    """Proposes all configs that differ in one interaction, in random order; the first champion has all.

    Source: VW ``oracle_rand_impl``.
    """

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return the champion's neighbours."""
        changes = space.interactions()
        return [champion.toggle(changes[number]) for number in draw.order(len(changes))]
