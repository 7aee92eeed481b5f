"""``--oracle_type qbase_cubic``: all quadratic interactions, and chosen cubic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import ConfigKind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class QbaseCubic(Oracle):
    """Proposes all configs that differ from the champion in one cubic interaction, in random order.

    All configs have every quadratic interaction. The first champion has no cubic one. ``--interaction_type``
    has no effect.

    Source: VW ``qbase_cubic``.
    """

    kind: ClassVar[ConfigKind] = ConfigKind.INCLUSION
    base: ClassVar[tuple[int, ...]] = (2,)
    orders: ClassVar[tuple[int, ...]] = (2, 3)

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return the champion's neighbours."""
        changes = space.interactions(3)
        return [champion.toggle(changes[number]) for number in draw.order(len(changes))]
