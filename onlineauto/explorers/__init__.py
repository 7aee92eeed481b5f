"""From scores to probabilities of actions: explorers, one file each, and the registry."""

from __future__ import annotations

from typing import Any

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
from onlineauto.options import Parts

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

EXPLORERS: Parts[Explorer] = Parts(
    "explorer",
    Explorer,
    {
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
    },
)
"""Explorers by name; the first one is the default without a search.

Register an explorer before a model that uses it is created or loaded.
"""
register = EXPLORERS.register
"""Make an explorer known by its name; see `onlineauto.options.Parts.register`."""
extend = EXPLORERS.extend
"""Add the options of explorers, also of those registered later, to a registry of options."""


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
    if explorer not in EXPLORERS:
        raise OptionError(
            f"explorer cannot be {short_repr(explorer)}; it takes one of {EXPLORERS.listed}, or one with "
            "settings, such as Bag(5) of onlineauto.explorers"
        )
    return EXPLORERS[explorer].keywords()
