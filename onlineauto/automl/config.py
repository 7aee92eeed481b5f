"""``Config``: a set of interactions and settings of the learner, used by a live config."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import chain, combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Interaction = tuple[bytes, ...]
"""Names of the namespaces that are crossed, in ascending order."""

MOST_FACTORS = 3
"""Number of namespaces of the longest interaction that is searched."""

Settings = tuple[tuple[str, float | str], ...]
"""Hyperparameters by name, in ascending order, with their values; others are as on the command line."""


_SLOTS = b"\x8b"


class ConfigKind(Enum):
    """The meaning of a config's elements."""

    EXCLUSION = "exclusion"
    """Interactions to leave out of all that the search offers."""
    INCLUSION = "inclusion"
    """Interactions to use."""


class _Hashed:
    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True)
class Config(_Hashed):
    """A set of interactions, and settings of hyperparameters."""

    elements: tuple[Interaction, ...] = ()  # Interactions left out or used, in ascending order, each once.
    # `EXCLUSION` if elements are left out, `INCLUSION` if they are used.
    kind: ConfigKind = ConfigKind.EXCLUSION
    settings: Settings = ()  # Hyperparameters that differ from the command line.

    def __hash__(self) -> int:
        """Return the hash, which is computed once, because the search looks for configs in sets."""
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash((self.elements, self.kind, self.settings)))
            return self._hash

    @staticmethod
    def of(elements: Iterable[Interaction], kind: ConfigKind) -> Config:
        """Return a config of elements in any order."""
        return Config(tuple(sorted(set(elements))), kind)

    def with_elements(self, elements: Iterable[Interaction]) -> Config:
        """Return this config with other elements, in any order."""
        return Config(tuple(sorted(set(elements))), self.kind, self.settings)

    def with_setting(self, name: str, value: float | str) -> Config:
        """Return this config with a hyperparameter set to a value.

        >>> Config().with_setting("learning_rate", 0.1).settings
        (('learning_rate', 0.1),)
        """
        settings = tuple(sorted({**dict(self.settings), name: value}.items()))
        return Config(self.elements, self.kind, settings)

    def toggle(self, interaction: Interaction) -> Config:
        """Return this config without `interaction` if it is an element, else with it, but never CCB's slots.

        >>> Config(((b"a", b"b"),)).toggle((b"a", b"a")).elements
        ((b'a', b'a'), (b'a', b'b'))
        >>> Config(((b"a", b"b"),)).toggle((b"a", b"b")).elements
        ()
        """
        if interaction in self.elements:
            return replace(
                self, elements=tuple(element for element in self.elements if element != interaction)
            )
        if _SLOTS in interaction:
            return self
        return replace(self, elements=tuple(sorted((*self.elements, interaction))))


def is_interaction(names: Sequence[bytes]) -> bool:
    """Return whether `names` can be the names of an interaction, or of a single namespace.

    >>> is_interaction((b"a", b"b")), is_interaction((b"a", b"")), is_interaction(())
    (True, False, False)
    """
    return 0 < len(names) <= MOST_FACTORS and all(names)


def possible_interactions(namespaces: Sequence[bytes], *orders: int) -> tuple[Interaction, ...]:
    """Return all interactions of `namespaces` (ascending), of each of the orders in turn.

    >>> possible_interactions([b"a", b"b"], 2)
    ((b'a', b'a'), (b'a', b'b'), (b'b', b'b'))
    """
    return _possible(tuple(namespaces), orders)


@lru_cache(maxsize=2)  # all live configs need the same interactions
def _possible(namespaces: tuple[bytes, ...], orders: tuple[int, ...]) -> tuple[Interaction, ...]:
    return tuple(chain.from_iterable(combinations_with_replacement(namespaces, order) for order in orders))


ORDERS = {"quadratic": (2,), "cubic": (3,), "both": (2, 3)}
"""Orders of the interactions, by ``--interaction_type``."""


def interactions_of(
    config: Config, namespaces: Sequence[bytes], *, interaction_type: str, base: Sequence[int] = ()
) -> tuple[Interaction, ...]:
    """Return the interactions of a config in the order in which they are summed: by length, then by name.

    >>> interactions_of(Config(((b"a", b"b"),)), [b"a", b"b"], interaction_type="quadratic")
    ((b'a', b'a'), (b'b', b'b'))

    Source: VW ``ns_based_config::apply_config_to_interactions``.
    """
    if config.kind is ConfigKind.EXCLUSION:
        offered = possible_interactions(namespaces, *ORDERS[interaction_type])
        if not config.elements:
            return offered
        left_out = set(config.elements)
        return tuple([interaction for interaction in offered if interaction not in left_out])
    chosen = (*config.elements, *possible_interactions(namespaces, *base))
    return tuple(sorted(chosen, key=lambda interaction: (len(interaction), interaction)))


_SPECIAL = {
    b" ": "[default]",
    b"\x8b": "[ccbslot]",
    b"\x8c": "[ccbid]",
    b"\x80": "[constant]",
    b":": "[wild]",
}
_FLAGS = {2: "-q ", 3: "--cubic="}


def namespace_text(name: bytes) -> str:
    """Return the name of a namespace as text for people.

    >>> namespace_text(b" ")
    '[default]'
    """
    return _SPECIAL.get(name) or name.decode("utf-8", "backslashreplace")


def flags_text(interactions: Iterable[Interaction]) -> str:
    """Return interactions as options, each followed by a space.

    >>> flags_text([(b"a", b"b"), (b"a", b"b", b"b")])
    '-q ab --cubic=abb '
    """
    texts = []
    for names in interactions:
        bar = "|" if any(len(name) > 1 for name in names) else ""
        texts.append(f"{_FLAGS[len(names)]}{bar.join(map(namespace_text, names))} ")
    return "".join(texts)


def words_text(interactions: Sequence[Interaction], *, most: int = 20) -> str:
    """Return the first `most` interactions as text for people.

    >>> words_text([(b"user", b"page"), (b"user", b"user")], most=1)
    'user*page and 1 more'
    """
    text = ", ".join("*".join(map(namespace_text, names)) for names in interactions[:most])
    more = len(interactions) - most
    return f"{text} and {more} more" if more > 0 else text


def elements_text(config: Config, delimiter: str = ", ") -> str:
    """Return the elements of a config as nested lists.

    >>> elements_text(Config(((b"a", b"b"), (b"c", b"c"))))
    '{["a", "b"], ["c", "c"]}'
    """
    lists = (
        "[" + delimiter.join(f'"{namespace_text(name)}"' for name in interaction) + "]"
        for interaction in config.elements
    )
    return "{" + delimiter.join(lists) + "}"
