"""From scores to probabilities of actions: explorers, one file each, and the registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.explorers.bag import Bag
from onlineauto.explorers.cover import Cover
from onlineauto.explorers.epsilon_decay import EpsilonDecay
from onlineauto.explorers.first import First
from onlineauto.explorers.greedy import Greedy
from onlineauto.explorers.regcb import Regcb
from onlineauto.explorers.rnd import Rnd
from onlineauto.explorers.softmax import Softmax
from onlineauto.explorers.squarecb import Squarecb
from onlineauto.explorers.synthcover import Synthcover

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.explorers.explorer import Explorer

__all__ = ["EXPLORERS"]

EXPLORERS: Mapping[str, Explorer] = {
    explorer.name: explorer
    for explorer in (
        Greedy(),
        First(),
        Softmax(),
        Squarecb(),
        Regcb(),
        Synthcover(),
        Bag(),
        Cover(),
        Rnd(),
        EpsilonDecay(),
    )
}
"""By their names; the first is the one that explores when no other is chosen."""
