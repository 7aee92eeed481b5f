"""``--oracle_type one_diff``: all neighbours of the champion."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class OneDiff(Oracle):
    """Proposes all configs that differ from the champion in one interaction; the first champion has all.

    Configs without one of the champion's interactions are first, then those with an additional one.

    Source: VW ``one_diff_impl``.
    """

    hides_champion: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return the champion's neighbours."""
        changes = (*space.crossed_by(champion), *space.only_new(champion.elements))
        return [space.toggle(champion, interaction) for interaction in changes]
