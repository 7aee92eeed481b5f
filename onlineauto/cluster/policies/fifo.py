"""``Fifo``: the job that came first is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.actions import NEVER, bundles
from onlineauto.cluster.policies.policy import Policy
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation

__all__ = ["Fifo"]


class Fifo(Policy):
    """Serve jobs in the order of their arrival; each gets what it asked for, and no more.

    Parameters
    ----------
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "fifo"

    def __init__(self, asked: int = 4) -> None:
        if asked < 1:
            raise OptionError(f"asked = {asked}: a job asks for one bundle at least")
        self.asked = asked

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for an earlier row."""
        order = -np.broadcast_to(np.arange(situation.places, dtype=np.float64), situation.valid.shape)
        return bundles(situation, np.where(situation.workers < self.asked, order, NEVER))
