"""What a priority is: it says which of the configs that wait is next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from onlineauto.automl.config import Config

__all__ = ["Priority"]


class Priority(ABC):
    """Ranks the configs that wait for a live place.

    To add one: write a class like this in a file of its own in `onlineauto.automl.priorities`, and give it
    a name in `PRIORITIES`; that name is then a choice of ``--priority_type``, and the tests hold the priority
    to `onlineauto.testing.check_priority`.
    """

    @abstractmethod
    def of(self, config: Config, count: Callable[[bytes], int]) -> float:
        """The priority of a config.

        Parameters
        ----------
        config : Config
            It waits for a live place.
        count : callable
            Tells how many actions of events, so far, had features in a namespace.

        Returns
        -------
        float
            Finite. The largest is next; of equal ones, the config that was proposed last.
        """

    def in_vw(self, config: Config, count: Callable[[bytes], int]) -> float:
        """The priority in exact mode; this one, unless VW has a defect to be reproduced."""
        return self.of(config, count)
