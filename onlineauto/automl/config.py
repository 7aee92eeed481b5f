"""Config: what a live slot learns with: a set of interactions, and settings of the learner."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import chain, combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "ORDERS",
    "Config",
    "Interaction",
    "Kind",
    "Settings",
    "interactions_of",
    "possible_interactions",
]

Interaction = tuple[bytes, ...]
"""Names of the namespaces that are crossed, in ascending order."""

Settings = tuple[tuple[str, float | str], ...]
"""Names of hyperparameters, in ascending order, each with its value; those that are not named are as the
command line has them."""


_SLOTS = b"\x8b"


class Kind(Enum):
    """What the elements of a config are."""

    EXCLUSION = "exclusion"
    """Interactions left out of all that the space offers."""
    INCLUSION = "inclusion"
    """Interactions chosen."""


@dataclass(frozen=True, slots=True)
class Config:
    """A set of interactions, and settings.

    Attributes
    ----------
    elements : tuple of Interaction
        Interactions left out or chosen; in ascending order, each once.
    kind : Kind
        Which of the two.
    settings : Settings
        Hyperparameters that are not as the command line has them.
    """

    elements: tuple[Interaction, ...] = ()
    kind: Kind = Kind.EXCLUSION
    settings: Settings = ()

    @staticmethod
    def of(elements: Iterable[Interaction], kind: Kind) -> Config:
        """Make a config of elements in any order."""
        return Config(tuple(sorted(set(elements))), kind)

    def crossing(self, elements: Iterable[Interaction]) -> Config:
        """The config with other elements, given in any order."""
        return replace(self, elements=Config.of(elements, self.kind).elements)

    def setting(self, name: str, value: float | str) -> Config:
        """The config with a hyperparameter set to a value.

        >>> Config().setting("learning_rate", 0.1).settings
        (('learning_rate', 0.1),)
        """
        return replace(self, settings=tuple(sorted({**dict(self.settings), name: value}.items())))

    def toggled(self, interaction: Interaction) -> Config:
        """The config with one element more, or, if it has this element, with one less.

        Interactions with the slots of conditional contextual bandits (byte 139) are never made elements.

        >>> Config(((b"a", b"b"),)).toggled((b"a", b"a")).elements
        ((b'a', b'a'), (b'a', b'b'))
        >>> Config(((b"a", b"b"),)).toggled((b"a", b"b")).elements
        ()
        """
        if interaction in self.elements:
            return replace(self, elements=tuple(each for each in self.elements if each != interaction))
        if _SLOTS in interaction:
            return self
        return replace(self, elements=tuple(sorted((*self.elements, interaction))))


def possible_interactions(namespaces: Sequence[bytes], *orders: int) -> tuple[Interaction, ...]:
    """All interactions of so many of `namespaces` (ascending), one order after the other.

    >>> possible_interactions([b"a", b"b"], 2)
    ((b'a', b'a'), (b'a', b'b'), (b'b', b'b'))
    """
    return _possible(tuple(namespaces), orders)


@lru_cache(maxsize=2)  # every live slot asks for the same
def _possible(namespaces: tuple[bytes, ...], orders: tuple[int, ...]) -> tuple[Interaction, ...]:
    return tuple(chain.from_iterable(combinations_with_replacement(namespaces, order) for order in orders))


ORDERS = {"quadratic": (2,), "cubic": (3,), "both": (2, 3)}
"""Orders of the interactions of each ``--interaction_type``."""


def interactions_of(
    config: Config, namespaces: Sequence[bytes], *, interaction_type: str, base: Sequence[int] = ()
) -> tuple[Interaction, ...]:
    """Interactions that a config stands for, in the order in which they are summed: by length, then by name.

    Parameters
    ----------
    config : Config
        What is left out or chosen.
    namespaces : sequence of bytes
        Namespaces met so far, in ascending order.
    interaction_type : {"quadratic", "cubic", "both"}
        What exclusions are taken from.
    base : sequence of int
        Orders of which an inclusion config has all interactions anyway (``qbase_cubic``: 2).

    Examples
    --------
    >>> interactions_of(Config(((b"a", b"b"),)), [b"a", b"b"], interaction_type="quadratic")
    ((b'a', b'a'), (b'b', b'b'))

    Source: VW ``ns_based_config::apply_config_to_interactions``.
    """
    if config.kind is Kind.EXCLUSION:
        offered = possible_interactions(namespaces, *ORDERS[interaction_type])
        if not config.elements:
            return offered
        left_out = set(config.elements)
        return tuple([interaction for interaction in offered if interaction not in left_out])
    chosen = (*config.elements, *possible_interactions(namespaces, *base))
    return tuple(sorted(chosen, key=lambda interaction: (len(interaction), interaction)))
