"""``Modelled``: policies that know, or learn, how fast jobs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.cluster.policies.policy import Policy
from onlineauto.cluster.policies.speeds import Speeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record


class Modelled(Policy):
    """Base of the policies that go by speeds.

    Parameters
    ----------
    speeds : Speeds, optional
        How fast jobs are; by default it is learnt from what they do.
    """

    def __init__(self, speeds: Speeds | None = None) -> None:
        self.speeds = Speeds() if speeds is None else speeds

    def observe(self, records: Sequence[Record]) -> None:
        """Learn speeds from the slot that has ended."""
        self.speeds.observe(records)
