"""``UntilKnown``: a policy that goes by speeds once it has seen any, and is fair until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies import Fair, MarginalGain, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Floats, Situation


class UntilKnown(Policy):
    """Decide as `MarginalGain` if all jobs are of kinds that it has seen at work, else as `Fair`.

    The default of `Cluster`. A kind is seen in its first slot, so the first slot of a new kind is a fair one.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(self) -> None:
        self._gain, self._fair = MarginalGain(), Fair()

    def score(self, situation: Situation) -> Floats:
        """Return the scores of one of both for each cluster."""
        known = {*self._gain.speeds.kinds}
        of_kind = np.array([kind in known for kind in situation.kinds])
        goes_by_speed = (of_kind[situation.kind] | ~situation.valid).all(1, keepdims=True)
        return np.where(goes_by_speed, self._gain.score(situation), self._fair.score(situation))

    def observe(self, records: Sequence[Record]) -> None:
        """Learn speeds from the slot that has ended."""
        self._gain.observe(records)
