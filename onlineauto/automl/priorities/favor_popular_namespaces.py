"""``--priority_type favor_popular_namespaces``: prefer interactions of frequent namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.automl.config import ConfigKind
from onlineauto.automl.priorities.priority import Priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config


class FavorPopularNamespaces(Priority):
    """Prefers configs that exclude rare interactions, or include frequent ones.

    The priority is the sum of the counts of all included interactions, or minus the sum for excluded ones.
    The count of an interaction is the number of actions with its rarest namespace.

    Source: VW ``calc_priority_favor_popular_namespaces``.

    Examples
    --------
    >>> from onlineauto.automl.config import Config
    >>> counts = {b"a": 5, b"b": 3}
    >>> FavorPopularNamespaces().of(Config(((b"a", b"b"),)), counts.__getitem__)
    -3.0
    """

    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """Return the sum of the smallest counts, negative for exclusions."""
        concerned = sum(min(map(count, interaction)) for interaction in config.elements)
        return float(concerned if config.kind is ConfigKind.INCLUSION else -concerned)
