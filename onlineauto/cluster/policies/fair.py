"""``Fair``: the job with the smallest dominant share is next."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.cluster.policies.actions import bundles
from onlineauto.cluster.policies.policy import Policy

if TYPE_CHECKING:
    from onlineauto.cluster.policies.situation import Floats, Situation


class Fair(Policy):
    """Give every job an equal dominant share: dominant resource fairness (DRF).

    The dominant share of a job is the largest part that it has of any resource. It needs to know nothing of
    the jobs, and gives away all there is: past the hump of their speeds too.

    Source: Ghodsi et al., *Dominant resource fairness*, NSDI 2011.
    """

    name: ClassVar[str] = "fair"

    def score(self, situation: Situation) -> Floats:
        """Return the smaller share as the higher score."""
        return bundles(situation, -situation.shares())
