"""VW's oracles: they propose neighbours of the champion, which differ from it in one interaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import Config, ConfigKind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.oracles.oracle import SearchSpace
    from onlineauto.automl.random_draw import RandomOrder


class OneDiff(Oracle):
    """Proposes all configs that differ from the champion in one interaction; the first champion has all.

    Configs without one of the champion's interactions are first, then those with an additional one.

    Source: VW ``one_diff_impl``.
    """

    name: ClassVar[str] = "one_diff"
    hides_champion: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return the champion's neighbours."""
        changes = (*space.crossed_by(champion), *space.only_new(champion.elements))
        return [space.toggle(champion, interaction) for interaction in changes]


class OneDiffInclusion(Oracle):
    """Proposes all configs that differ from the champion in one interaction; the first champion has none.

    Source: VW ``one_diff_inclusion_impl``.
    """

    name: ClassVar[str] = "one_diff_inclusion"
    kind: ClassVar[ConfigKind] = ConfigKind.INCLUSION
    hides_champion: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return the champion's neighbours."""
        return [space.toggle(champion, interaction) for interaction in space.interactions()]


class Rand(Oracle):
    """Proposes all configs that differ in one interaction, in random order; the first champion has all.

    Source: VW ``oracle_rand_impl``.
    """

    name: ClassVar[str] = "rand"

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return the champion's neighbours."""
        changes = space.interactions()
        return [champion.toggle(changes[number]) for number in draw.order(len(changes))]


class QbaseCubic(Oracle):
    """Proposes all configs that differ from the champion in one cubic interaction, in random order.

    All configs have every quadratic interaction. The first champion has no cubic one. ``--interaction_type``
    has no effect.

    Source: VW ``qbase_cubic``.
    """

    name: ClassVar[str] = "qbase_cubic"
    kind: ClassVar[ConfigKind] = ConfigKind.INCLUSION
    base: ClassVar[tuple[int, ...]] = (2,)
    orders: ClassVar[tuple[int, ...]] = (2, 3)

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return the champion's neighbours."""
        changes = space.interactions(3)
        return [champion.toggle(changes[number]) for number in draw.order(len(changes))]


class Champdupe(Oracle):
    """Proposes a copy of the champion, which must learn the same, and a config without interactions.

    Source: VW ``champdupe_impl``.
    """

    name: ClassVar[str] = "champdupe"
    once: ClassVar[bool] = True

    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:  # noqa: ARG002
        """Return these two configs."""
        return [Config((), ConfigKind.INCLUSION), champion]
