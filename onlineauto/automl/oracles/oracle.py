"""What an oracle is: it proposes configs for a champion to be challenged by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.automl.config import ORDERS, Config, Interaction, Kind, interactions_of, possible_interactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.automl.random_draw import Draw
    from onlineauto.options import Tunable

__all__ = ["Oracle", "Space"]


@dataclass(frozen=True, slots=True)
class Space:
    """What configs can be made of.

    Attributes
    ----------
    namespaces : tuple of bytes
        Those met so far, in ascending order.
    interaction_type : {"quadratic", "cubic", "both"}
        As on the command line.
    new : frozenset of bytes
        Where namespaces are met late, those: proposals without any of them are under consideration already,
        so the methods below leave them out. Empty otherwise.
    of_actions : frozenset of bytes
        Namespaces that were met on lines of actions; empty where events have no such lines.
    gains : mapping of Interaction to float
        What each interaction that is screened seems to gain: the part of the champion's squared residuals
        that it explains if the champion lacks it, that it costs if the champion has it.
    sizes : mapping of bytes to float
        Features that an action has in each namespace, on average.
    n_actions : float
        Actions of an event, on average.
    mature : bool
        Whether the champion has been one for the length of a first lease.
    searched : frozenset of str
        What is searched: ``interactions`` and names of hyperparameters, as ``--search`` has them.
    tunable : mapping of str to Tunable
        How each hyperparameter is searched, in the order in which they are tried.
    defaults : mapping of str to float or str
        Values of hyperparameters on the command line.
    telling : tuple of bytes
        Namespaces that no config may be without, see `onlineauto.automl.search.Rules`.
    """

    namespaces: tuple[bytes, ...]
    interaction_type: str
    new: frozenset[bytes] = frozenset()
    of_actions: frozenset[bytes] = frozenset()
    gains: Mapping[Interaction, float] = field(default_factory=dict)
    sizes: Mapping[bytes, float] = field(default_factory=dict)
    n_actions: float = 1.0
    mature: bool = False
    searched: frozenset[str] = frozenset({"interactions"})
    tunable: Mapping[str, Tunable] = field(default_factory=dict)
    defaults: Mapping[str, float | str] = field(default_factory=dict)
    telling: tuple[bytes, ...] = ()

    def interactions(self, *orders: int) -> tuple[Interaction, ...]:
        """All interactions of so many namespaces (of this type, if not said), by length, then by name."""
        return self.only_new(possible_interactions(self.namespaces, *orders or ORDERS[self.interaction_type]))

    def interactions_of(self, config: Config) -> tuple[Interaction, ...]:
        """Interactions of one config; for an inclusion, those that it names."""
        crossed = interactions_of(config, self.namespaces, interaction_type=self.interaction_type)
        return self.only_new(crossed)

    def crossed_by(self, config: Config) -> tuple[Interaction, ...]:
        """Interactions of a config, those among them that tell slots, by length, then by name."""
        crossed = self.interactions_of(config)
        if not self.telling:
            return crossed
        alone = ((name,) for name in self.namespaces)
        told = ((*names, self.telling[-1]) for names in (*crossed, *alone))
        return tuple(sorted((*crossed, *told), key=lambda names: (len(names), names)))

    def toggled(self, config: Config, interaction: Interaction) -> Config:
        """A config that differs in an interaction; the same, if no config may."""
        return config.toggled(interaction) if set(self.telling).isdisjoint(interaction) else config

    def terms(self, interactions: Iterable[Interaction]) -> float:
        """Features that interactions have in an event, on average; those without the action count once.

        >>> space = Space((b"a", b"b", b"z"), "quadratic", of_actions=frozenset({b"z"}), n_actions=10)
        >>> space.terms([(b"a", b"b"), (b"a", b"z")])
        11.0
        """
        return sum(map(self.size, interactions))

    def size(self, interaction: Interaction) -> float:
        """Features that one interaction has in an event, on average."""
        size = 1.0
        for name in interaction:
            size *= self.sizes.get(name, 1.0)
        return size if self.of_actions.isdisjoint(interaction) else size * self.n_actions

    def one_step(self, config: Config) -> Iterator[Config]:
        """Yield the neighbours of a config: one hyperparameter that is searched, one step away."""
        settings = dict(config.settings)
        for name, tunable in self.tunable.items():
            if name in self.searched:
                value: Any = settings.get(name, self.defaults[name])
                yield from (config.setting(name, each) for each in tunable.neighbours(value))

    def only_new(self, interactions: tuple[Interaction, ...]) -> tuple[Interaction, ...]:
        """Those with a new namespace; all, if there is none."""
        if not self.new:
            return interactions
        return tuple(each for each in interactions if not self.new.isdisjoint(each))


class Oracle(ABC):
    """Proposes configs.

    To add one: write a class like this in a file of its own in `onlineauto.automl.oracles`, and give it a
    name in `ORACLES`; that name is then a choice of ``--oracle_type``, and the tests hold the oracle to
    `onlineauto.testing.check_oracle`.

    An oracle has no state. It is asked at the first event, whenever a new namespace is met (not in exact
    mode), whenever the champion changes and, if it `renews`, at every review. Proposals that are under
    consideration already are dropped, so it need not know what it proposed before.

    Attributes
    ----------
    kind : Kind
        What the elements of the first champion are; it has none, so with exclusions it has all interactions.
    base : tuple of int
        Orders of which every inclusion config has all interactions.
    orders : tuple of int
        Orders of the interactions it chooses from, where ``--interaction_type`` has no say.
    once : bool
        Ask only at the first event, and take every proposal, doubles too; a change of champion then keeps all
        configs. For oracles that serve as tests.
    hides_champion : bool
        In exact mode, take the champion for a config without elements while duplicates are looked for: VW
        moves its elements away meanwhile. Leave it off in an oracle that VW does not have.
    in_vw : bool
        Whether VW has it too.
    renews : bool
        Ask again as evidence grows, for the champion at hand; what was never tried and is not proposed again
        is forgotten. A change of champion then keeps the challengers, and proposals come best first.
    """

    kind: ClassVar[Kind] = Kind.EXCLUSION
    base: ClassVar[tuple[int, ...]] = ()
    orders: ClassVar[tuple[int, ...]] = ()
    once: ClassVar[bool] = False
    hides_champion: ClassVar[bool] = False
    in_vw: ClassVar[bool] = True
    renews: ClassVar[bool] = False

    def first(self, space: Space) -> Config | None:  # noqa: ARG002 - what others may need
        """Say what the first champion becomes when the first namespaces are met; None: what it is."""
        return None

    def screened(self, champion: Config, *, space: Space, turn: int) -> Sequence[Interaction]:  # noqa: ARG002
        """Say which interactions to screen, see `Space.gains`; `turn` counts how often this was asked."""
        return ()

    @abstractmethod
    def propose(self, champion: Config, *, space: Space, draw: Draw) -> Sequence[Config]:
        """Propose challengers.

        Parameters
        ----------
        champion : Config
            The config that predicts.
        space : Space
            What configs can be made of.
        draw : Draw
            The only source of randomness.

        Returns
        -------
        sequence of Config
            In the order in which they are numbered; with ``--priority_type none`` the last is tried first,
            unless the oracle `renews`.
        """
