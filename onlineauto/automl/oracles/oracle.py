"""``Oracle``: the base class of oracles, which propose challengers of a champion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.automl.config import (
    ORDERS,
    Config,
    ConfigKind,
    Interaction,
    interactions_of,
    possible_interactions,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.automl.random_draw import RandomOrder
    from onlineauto.options import Tunable


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """The components available to configs."""

    namespaces: tuple[bytes, ...]  # Namespaces seen so far, in ascending order.
    interaction_type: str  # The value of ``--interaction_type``.
    # The namespaces first seen late, if the oracle is called because of them; else empty. Proposals without
    # any of them are already under consideration, so the methods below leave them out.
    new: frozenset[bytes] = frozenset()
    # Namespaces seen on lines of actions; empty if events have no such lines.
    of_actions: frozenset[bytes] = frozenset()
    # Namespaces that are long vectors. Their products with each other would be too many.
    vectors: frozenset[bytes] = frozenset()
    # The gain of each screened interaction. If the champion lacks it, this is the part of the champion's
    # squared residuals that it explains. If the champion has it, this is the part that it adds.
    gains: Mapping[Interaction, float] = field(default_factory=dict)
    # Mean number of an action's features, by namespace.
    sizes: Mapping[bytes, float] = field(default_factory=dict)
    n_actions: float = 1.0  # Mean number of an event's actions.
    mature: bool = False  # True if the champion has been champion for at least the length of a first lease.
    # Names of what is searched: ``interactions`` and hyperparameters, like in ``--search``.
    searched: frozenset[str] = frozenset({"interactions"})
    # The search space of each hyperparameter, in the order in which they are tried.
    tunable: Mapping[str, Tunable] = field(default_factory=dict)
    # Values of hyperparameters on the command line.
    defaults: Mapping[str, float | str] = field(default_factory=dict)
    # Namespaces that no config leaves out, see `onlineauto.automl.search.SearchRules`.
    slot_namespaces: tuple[bytes, ...] = ()
    grows: bool = True  # True if challengers can have interactions that the first champion lacks.

    def interactions(self, *orders: int) -> tuple[Interaction, ...]:
        """Return all interactions of `orders`, by default of `interaction_type`; by length, then by name."""
        return self.only_new(possible_interactions(self.namespaces, *orders or ORDERS[self.interaction_type]))

    def interactions_of(self, config: Config) -> tuple[Interaction, ...]:
        """Return the interactions of a config; for an inclusion config, its elements."""
        crossed = interactions_of(config, self.namespaces, interaction_type=self.interaction_type)
        return self.only_new(crossed)

    def crossed_by(self, config: Config) -> tuple[Interaction, ...]:
        """Return the interactions of a config, with those that distinguish slots, by length, then by name."""
        crossed = self.interactions_of(config)
        if not self.slot_namespaces:
            return crossed
        alone = ((name,) for name in self.namespaces)
        indexed = ((*names, self.slot_namespaces[-1]) for names in (*crossed, *alone))
        return tuple(sorted((*crossed, *indexed), key=lambda names: (len(names), names)))

    def toggle(self, config: Config, interaction: Interaction) -> Config:
        """Return the config with `interaction` toggled; unchanged if no config may leave that out."""
        return config.toggle(interaction) if set(self.slot_namespaces).isdisjoint(interaction) else config

    def allows(self, interaction: Interaction) -> bool:
        """Return whether a config may have an interaction: of a long vector, that with one other namespace.

        >>> space = SearchSpace((b"a", b"v"), "quadratic", vectors=frozenset({b"v"}))
        >>> [space.allows(names) for names in ((b"a", b"v"), (b"v", b"v"), (b"a", b"a", b"v"))]
        [True, False, False]
        """
        if not self.vectors:
            return True
        n_vectors = sum(name in self.vectors for name in interaction)
        return n_vectors == 0 or (n_vectors == 1 and len(interaction) <= 2)

    def terms(self, interactions: Iterable[Interaction]) -> float:
        """Return the mean number of features of interactions in an event; those of contexts alone count once.

        >>> space = SearchSpace((b"a", b"b", b"z"), "quadratic", of_actions=frozenset({b"z"}), n_actions=10)
        >>> space.terms([(b"a", b"b"), (b"a", b"z")])
        11.0
        """
        return sum(map(self.size, interactions))

    def size(self, interaction: Interaction) -> float:
        """Return the mean number of features of one interaction in an event."""
        size = 1.0
        for name in interaction:
            size *= self.sizes.get(name, 1.0)
        return size if self.of_actions.isdisjoint(interaction) else size * self.n_actions

    def setting_neighbours(self, config: Config) -> Iterator[Config]:
        """Yield the neighbours of a config: one searched hyperparameter, one step away."""
        settings = dict(config.settings)
        for name, tunable in self.tunable.items():
            if name in self.searched:
                value: Any = settings.get(name, self.defaults[name])
                yield from (config.with_setting(name, neighbour) for neighbour in tunable.neighbours(value))

    def only_new(self, interactions: tuple[Interaction, ...]) -> tuple[Interaction, ...]:
        """Return the interactions that have a new namespace; all if no namespace is new."""
        if not self.new:
            return interactions
        return tuple(names for names in interactions if not self.new.isdisjoint(names))


class Oracle(ABC):
    """Proposes configs.

    To add an oracle, write a subclass, and pass an object to `onlineauto.automl.oracles.register`. Its name
    is then a choice of ``--oracle_type``. `onlineauto.testing.check_oracle` checks the oracle.

    An oracle has no state. It is called at the first event, at every new namespace (not in VW), at every
    change of champion and, if it `renews`, at every review. Proposals that are already under consideration
    are dropped, so an oracle need not remember its proposals.
    """

    name: ClassVar[str]  # The name in the registry.
    # Kind of the first champion, which has no elements. So with exclusions it has all interactions.
    kind: ClassVar[ConfigKind] = ConfigKind.EXCLUSION
    base: ClassVar[tuple[int, ...]] = ()  # Orders of which every inclusion config has all interactions.
    orders: ClassVar[tuple[int, ...]] = ()  # Orders to choose from, if not by ``--interaction_type``.
    # Call only at the first event, and keep every proposal, even duplicates; a change of champion then keeps
    # all configs. For test oracles.
    once: ClassVar[bool] = False
    # VW treats the champion as a config without elements while it searches for duplicates, because it has
    # moved the elements elsewhere. False in an oracle that VW does not have.
    hides_champion: ClassVar[bool] = False
    in_vw: ClassVar[bool] = True  # True if VW has this oracle too; of no effect outside the package.
    # Call again as evidence grows, for the current champion. Configs that were never tried and are not
    # proposed again are dropped. A change of champion then keeps the challengers, and proposals must be in
    # order, the best first.
    renews: ClassVar[bool] = False

    def first(self, space: SearchSpace) -> Config | None:  # noqa: ARG002 - other oracles need it
        """Return the first champion when the first namespaces are seen; None for no change."""
        return None

    def screened(self, champion: Config, *, space: SearchSpace, turn: int) -> Sequence[Interaction]:  # noqa: ARG002
        """Return the interactions to screen, see `SearchSpace.gains`; `turn` counts the calls."""
        return ()

    @abstractmethod
    def propose(self, champion: Config, *, space: SearchSpace, draw: RandomOrder) -> Sequence[Config]:
        """Return challengers of a champion, in the order of their indices; only `draw` is random.

        With ``--priority_type none`` the last one is tried first, unless the oracle `renews`.
        """
