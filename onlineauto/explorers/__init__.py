"""From scores to probabilities of actions: explorers, one file each, and the registry."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from onlineauto.errors import OptionError, short_repr
from onlineauto.explorers.explorer import Explorer
from onlineauto.explorers.kinds.bag import Bag
from onlineauto.explorers.kinds.cover import Cover
from onlineauto.explorers.kinds.epsilon_decay import EpsilonDecay
from onlineauto.explorers.kinds.first import First
from onlineauto.explorers.kinds.greedy import Greedy
from onlineauto.explorers.kinds.regcb import Regcb
from onlineauto.explorers.kinds.rnd import Rnd
from onlineauto.explorers.kinds.scaled_squarecb import ScaledSquarecb
from onlineauto.explorers.kinds.softmax import Softmax
from onlineauto.explorers.kinds.squarecb import Squarecb
from onlineauto.explorers.kinds.synthcover import Synthcover
from onlineauto.options import Registry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options.registry import Group

__all__ = [
    "EXPLORERS",
    "Bag",
    "Cover",
    "EpsilonDecay",
    "First",
    "Greedy",
    "Regcb",
    "Rnd",
    "ScaledSquarecb",
    "Softmax",
    "Squarecb",
    "Synthcover",
    "explorer_keywords",
    "extend",
    "register",
]

_EXPLORERS: dict[str, Explorer] = {
    explorer.name: explorer
    for explorer in (
        Greedy(),
        First(),
        Softmax(),
        Squarecb(),
        ScaledSquarecb(),
        Regcb(),
        Synthcover(),
        Bag(),
        Cover(),
        Rnd(),
        EpsilonDecay(),
    )
}

EXPLORERS: Mapping[str, Explorer] = MappingProxyType(_EXPLORERS)
"""Explorers by name; the first one is the default without a search."""

_EXTENDED: list[Registry] = []


def register(explorer: Explorer) -> None:
    """Add an explorer from outside the package, and add its options to every registry of options.

    Register an explorer before a model that uses it is created or loaded.

    Raises
    ------
    ValueError
        If an explorer or an option of that name exists; then nothing is added.
    """
    if explorer.name in EXPLORERS:
        raise ValueError(f"there is an explorer {explorer.name} already")
    for registry in _EXTENDED:
        Registry((*registry.groups, *_missing(registry, explorer)))
    for registry in _EXTENDED:
        registry.add(*_missing(registry, explorer))
    _EXPLORERS[explorer.name] = explorer


def explorer_keywords(explorer: str | Explorer) -> dict[str, Any]:
    """Return the options that choose an explorer, by its name or as an instance with settings.

    Raises
    ------
    OptionError
        The explorer is not registered, or takes a value and has none.
    """
    if isinstance(explorer, Explorer):
        if type(EXPLORERS.get(explorer.name)) is not type(explorer):
            raise OptionError(
                f"explorer {explorer.name!r} is not registered: onlineauto.explorers.register adds it"
            )
        return explorer.keywords()
    if explorer not in tuple(EXPLORERS):  # which also compares what is neither
        raise OptionError(
            f"explorer cannot be {short_repr(explorer)}; it takes one of {', '.join(EXPLORERS)}, or one with "
            "settings, such as Bag(5) of onlineauto.explorers"
        )
    return EXPLORERS[explorer].keywords()


def extend(registry: Registry) -> None:
    """Add the options of all explorers to a registry, including explorers that are registered later."""
    for explorer in EXPLORERS.values():
        registry.add(*_missing(registry, explorer))
    _EXTENDED.append(registry)


def _missing(registry: Registry, explorer: Explorer) -> list[Group]:
    return [group for group in explorer.options if group not in registry.groups]
