"""Priorities, which rank the waiting configs: the base class, VW's two, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from onlineauto.automl.config import ConfigKind
from onlineauto.options import Parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config


class Priority(ABC):
    """Ranks the configs that wait to become live.

    To add a priority, write a subclass, and pass an object to `register`. Its name is then a choice of
    ``--priority_type``. `onlineauto.testing.check_priority` checks the priority.
    """

    name: ClassVar[str]  # The name in the registry.

    @abstractmethod
    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """Return a config's priority, a finite number: the largest is next, and of equals the last proposed.

        `count` returns the number of actions so far that had features in a namespace.
        """


class NoPriority(Priority):
    """Gives every config the same priority, so that the one proposed last is next."""

    name: ClassVar[str] = "none"

    def of(self, config: Config, count: Callable[[bytes], int]) -> float:  # noqa: ARG002
        """Return 0."""
        return 0.0


class FavorPopularNamespaces(Priority):
    """Prefers configs that exclude rare interactions, or include frequent ones.

    The priority is the sum of the counts of all included interactions, or minus the sum for excluded ones.
    The count of an interaction is the number of actions with its rarest namespace.

    Source: VW ``calc_priority_favor_popular_namespaces``.

    >>> from onlineauto.automl.config import Config
    >>> counts = {b"a": 5, b"b": 3}
    >>> FavorPopularNamespaces().of(Config(((b"a", b"b"),)), counts.__getitem__)
    -3.0
    """

    name: ClassVar[str] = "favor_popular_namespaces"

    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """Return the sum of the smallest counts, negative for exclusions."""
        concerned = sum(min(map(count, interaction)) for interaction in config.elements)
        return float(concerned if config.kind is ConfigKind.INCLUSION else -concerned)


PRIORITIES: Parts[Priority] = Parts(
    "priority", Priority, {priority.name: priority for priority in (NoPriority(), FavorPopularNamespaces())}
)
"""Priorities by their names on the command line."""
register = PRIORITIES.register
"""Make a priority known by its name; see `onlineauto.options.Parts.register`."""
