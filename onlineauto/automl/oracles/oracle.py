"""What an oracle is: it proposes configs for a champion to be challenged by."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import ORDERS, Config, Interaction, Kind, interactions_of, possible_interactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.automl.random_draw import Draw

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
    """

    namespaces: tuple[bytes, ...]
    interaction_type: str
    new: frozenset[bytes] = frozenset()
    of_actions: frozenset[bytes] = frozenset()

    def interactions(self, *orders: int) -> tuple[Interaction, ...]:
        """All interactions of so many namespaces (of this type, if not said), by length, then by name."""
        return self.only_new(possible_interactions(self.namespaces, *orders or ORDERS[self.interaction_type]))

    def interactions_of(self, config: Config) -> tuple[Interaction, ...]:
        """Interactions of one config; for an inclusion, those that it names."""
        crossed = interactions_of(config, self.namespaces, interaction_type=self.interaction_type)
        return self.only_new(crossed)

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
    mode) and whenever the champion changes. Proposals that are under consideration already are dropped, so it
    need not know what it proposed before.

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
    """

    kind: ClassVar[Kind] = Kind.EXCLUSION
    base: ClassVar[tuple[int, ...]] = ()
    orders: ClassVar[tuple[int, ...]] = ()
    once: ClassVar[bool] = False
    hides_champion: ClassVar[bool] = False
    in_vw: ClassVar[bool] = True

    def first(self, space: Space) -> Config | None:  # noqa: ARG002 - what others may need
        """Say what the first champion becomes when the first namespaces are met; None: what it is."""
        return None

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
            In the order in which they are numbered; with ``--priority_type none`` the last is tried first.
        """
