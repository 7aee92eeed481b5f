"""``Srtf``: the job that would be done first is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.cluster.policies.asked import check_asked, score_asked, time_asked
from onlineauto.cluster.policies.modelled import Modelled

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds


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
        self.asked = check_asked(asked)

    def score(self, situation: Situation) -> Floats:
        """Return a higher score for less time that remains, with what each job asked for."""
        return score_asked(situation, -time_asked(situation, self.speeds, self.asked), self.asked)
