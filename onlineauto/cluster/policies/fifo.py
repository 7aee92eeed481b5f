"""``Fifo``: the job that came first is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.asked import check_asked, score_asked
from onlineauto.cluster.policies.policy import Policy

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation


class Fifo(Policy):
    """Serve jobs in the order of their arrival; each gets what it asked for, and no more.

    Parameters
    ----------
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "fifo"

    def __init__(self, asked: int = 4) -> None:
        self.asked = check_asked(asked)

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for an earlier row."""
        order = -np.broadcast_to(np.arange(situation.places, dtype=np.float64), situation.valid.shape)
        return score_asked(situation, order, self.asked)
