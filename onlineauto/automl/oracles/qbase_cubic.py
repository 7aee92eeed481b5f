"""``--oracle_type qbase_cubic``: all quadratic interactions, and chosen cubic ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import Kind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.oracles.oracle import Space
    from onlineauto.automl.random_draw import Draw


class QbaseCubic(Oracle):
    """Proposes all configs that differ from the champion in one cubic interaction, in random order.

    All configs have every quadratic interaction. The first champion has no cubic one. ``--interaction_type``
    has no effect.

    Source: VW ``qbase_cubic``.
    """

    kind: ClassVar[Kind] = Kind.INCLUSION
    base: ClassVar[tuple[int, ...]] = (2,)
    orders: ClassVar[tuple[int, ...]] = (2, 3)

    def propose(self, champion: Config, *, space: Space, draw: Draw) -> Sequence[Config]:
        """Return the champion's neighbours."""
        changes = space.interactions(3)
        return [champion.toggled(changes[number]) for number in draw.order(len(changes))]
