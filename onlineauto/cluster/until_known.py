"""``UntilKnown``: the default policy, which uses speeds once they are known and is fair until then."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.policies import ClusterPolicy, Fair, MarginalGain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Floats, Situation


class UntilKnown(ClusterPolicy):
    """Decide like `MarginalGain` if the kinds of all jobs have observations, and otherwise like `Fair`.

    This is the default of `Cluster`. A new kind is observed in its first slot, in which `Fair` decides.
    """

    name: ClassVar[str] = "marginal-gain"

    def __init__(self) -> None:
        self._gain, self._fair = MarginalGain(), Fair()

    def score(self, situation: Situation) -> Floats:
        """Return the scores of one of the two policies for each cluster."""
        known = {*self._gain.speeds.kinds}
        of_kind = np.array([kind in known for kind in situation.kinds])
        uses_speeds = (of_kind[situation.kind] | ~situation.valid).all(1, keepdims=True)
        return np.where(uses_speeds, self._gain.score(situation), self._fair.score(situation))

    def observe(self, records: Sequence[Record]) -> None:
        """Learn speeds from the slot that has ended."""
        self._gain.observe(records)
