"""ε-greedy: mostly the best action, now and then any.

The probability ε is spread over all actions, the rest goes to the best; several that are as good share it.
It is the explorer when no other is chosen.

Source: Langford & Zhang, *The Epoch-Greedy Algorithm for Contextual Multi-armed Bandits*, 2007; VW's
``--epsilon`` and ``--first_only``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.explorers.explorer import Explorer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.options import Configuration

__all__ = ["Greedy"]


class Greedy(Explorer):
    """Mostly the best action; its options are those that other explorers share."""

    name = "greedy"
    flags = ()
    uses = ("epsilon", "first_only")
    epsilon = 0.05
    predicts_apart = False

    def parameters(self, configuration: Configuration, *, exact: bool) -> Mapping[str, float]:
        """Nothing of its own."""
        del configuration, exact
        return {}
