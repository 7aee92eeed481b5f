"""``Srtf``: the job that would be done first is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies.actions import NEVER, bundles
from onlineauto.cluster.policies.modelled import Modelled
from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds

__all__ = ["Srtf"]


class Srtf(Modelled):
    """Serve the shortest remaining time first; each job gets what it asked for, and no more.

    Parameters
    ----------
    speeds : Speeds, optional
        How fast jobs are; by default it is learnt from what they do.
    asked : int
        Bundles, of a worker and a server, that each job asks for.
    """

    name: ClassVar[str] = "srtf"

    def __init__(self, speeds: Speeds | None = None, *, asked: int = 4) -> None:
        super().__init__(speeds)
        if asked < 1:
            raise OptionError(f"asked = {asked}: a job asks for one bundle at least")
        self.asked = asked

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for less time that remains, with what each job asked for."""
        asked = np.full_like(situation.workers, self.asked)
        servers = np.where(situation.takes_servers, asked, 0)
        time = situation.remaining * self.speeds.times(situation, asked, servers)
        return bundles(situation, np.where(situation.workers < self.asked, -time, NEVER))
