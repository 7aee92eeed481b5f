"""``--oracle_type one_diff_inclusion``: all neighbours of the champion, starting without interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import ConfigKind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.config import Config
    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class OneDiffInclusion(Oracle):
    """Proposes all configs that differ from the champion in one interaction; the first champion has none.

    Source: VW ``one_diff_inclusion_impl``.
    """

    kind: ClassVar[ConfigKind] = ConfigKind.INCLUSION
    hides_champion: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return the champion's neighbours."""
        return [space.toggle(champion, interaction) for interaction in space.interactions()]
