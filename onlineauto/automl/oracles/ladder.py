"""``--oracle_type ladder``: whole families of interactions first, then one step at a time."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import Config, Kind
from onlineauto.automl.oracles.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from onlineauto.automl.config import Interaction
    from onlineauto.automl.oracles.oracle import Space
    from onlineauto.automl.random_draw import Draw

__all__ = ["Ladder"]


class Ladder(Oracle):
    """Context with action, then pairs of contexts with action, or all pairs; then one more or one less.

    What is best comes mostly from a whole family, and racing these first loses little. Namespaces of the
    shared line are the context, those of the other lines are the action's. Products of contexts alone are the
    same for every action, and tell none from another: they are left out, but for the family of all pairs.
    """

    kind: ClassVar[Kind] = Kind.INCLUSION
    orders: ClassVar[tuple[int, ...]] = (2, 3)
    in_vw: ClassVar[bool] = False

    def first(self, space: Space) -> Config:
        """Begin with every context crossed with every namespace of the action."""
        return Config.of(_crossed(space), self.kind)

    def propose(self, champion: Config, *, space: Space, draw: Draw) -> Sequence[Config]:  # noqa: ARG002
        """Propose the neighbours, and the families, of which the last are tried first."""
        crossed, deep = _crossed(space), _deep(space)
        steps = space.only_new((*deep, *_within(space), *crossed))
        proposals = [champion.toggled(interaction) for interaction in steps]
        if not space.new:
            families: list[Iterable[Interaction]] = [(), space.interactions(2), crossed, (*crossed, *deep)]
            proposals += [Config.of(family, self.kind) for family in families]
        return [each for each in dict.fromkeys(proposals) if each != champion]


def _crossed(space: Space) -> tuple[Interaction, ...]:
    """Context with action; all pairs where nothing is known to be the action's."""
    if not space.of_actions:
        return space.interactions(2)
    return tuple(_sorted(names) for names in product(_contexts(space), sorted(space.of_actions)))


def _deep(space: Space) -> tuple[Interaction, ...]:
    """Pairs of contexts with action."""
    pairs = combinations(_contexts(space), 2)
    return tuple(_sorted((*pair, name)) for pair, name in product(pairs, sorted(space.of_actions)))


def _within(space: Space) -> tuple[Interaction, ...]:
    """Pairs of the action's namespaces."""
    return tuple(combinations(sorted(space.of_actions), 2))


def _contexts(space: Space) -> tuple[bytes, ...]:
    return tuple(name for name in space.namespaces if name not in space.of_actions)


def _sorted(names: Iterable[bytes]) -> Interaction:
    return tuple(sorted(names))
