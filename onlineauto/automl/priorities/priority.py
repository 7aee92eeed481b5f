"""``Priority``: the base class of priorities, which rank the waiting configs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config


class Priority(ABC):
    """Ranks the configs that wait to become live.

    To add a priority, write a subclass in a separate file in `onlineauto.automl.priorities`, and add its name
    to `PRIORITIES`. The name is then a choice of ``--priority_type``, and the tests check the priority with
    `onlineauto.testing.check_priority`.
    """

    @abstractmethod
    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """Return the priority of a config.

        Parameters
        ----------
        config : Config
            A waiting config.
        count : callable
            Returns the number of actions so far that had features in a namespace.

        Returns
        -------
        float
            A finite number. The config with the largest is next; among equals, the config proposed last.
        """
