"""``Priority``: the base class of priorities, which rank the waiting configs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config


class Priority(ABC):
    """Ranks the configs that wait to become live.

    To add a priority, write a subclass in a file of its own in `onlineauto.automl.priorities`, and give it a
    name in `PRIORITIES`. The name is then a choice of ``--priority_type``, and the tests check the priority
    with `onlineauto.testing.check_priority`.
    """

    @abstractmethod
    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """Return the priority of a config.

        Parameters
        ----------
        config : Config
            A waiting config.
        count : callable
            Returns how many actions of events so far had features in a namespace.

        Returns
        -------
        float
            Finite. The largest comes next; among equals, the config that was proposed last.
        """
