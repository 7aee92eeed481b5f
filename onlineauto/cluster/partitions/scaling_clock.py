"""``ScalingClock``: the version at which servers and workers change to the next map of blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_ROUND_TRIPS: Final = 3
"""Number of round trips for which versions are expected to pass until all nodes know the clock, as in DL2."""
_MARGIN: Final = 3
"""Number of versions added to them, as in DL2."""


class NodeTiming(NamedTuple):
    """The last report of a server or worker."""

    version: int  # The last version that the node has, or has begun.
    speed: float  # Versions per second.
    round_trip: float  # Seconds from a message of the coordinator to its answer.


def start_version(timings: Iterable[NodeTiming]) -> int:
    """Return the version at which a change should start, so that all nodes hear of it before.

    This is max version + ceil(3 * max speed * max round trip) + 3.

    >>> start_version([NodeTiming(40, 10.0, 0.02), NodeTiming(41, 12.0, 0.05)])
    46

    Source: Peng et al., *DL2*, 2021, section 5.
    """
    versions, speeds, round_trips = zip(*timings, strict=True)
    return int(max(versions) + math.ceil(_ROUND_TRIPS * max(speeds) * max(round_trips)) + _MARGIN)


class ScalingClock:
    """The clock of one change, and which nodes have confirmed it.

    DL2 trusts that every node hears of the clock in time. Here the change is allowed only once every node has
    confirmed the clock before reaching it; a node that confirms too late moves the clock, and all nodes
    confirm again. So a wrong estimate of speed or round trip costs time, and never correctness.

    Attributes
    ----------
    start : int
        The version at which blocks migrate and nodes take the next map.
    """

    def __init__(self, timings: Mapping[str, NodeTiming]) -> None:
        self._timings = dict(timings)
        self._waiting = set(timings)
        self.start = start_version(timings.values())

    @property
    def is_confirmed(self) -> bool:
        """True once every node has confirmed the clock before reaching it."""
        return not self._waiting

    def confirm(self, node: str, start: int, version: int) -> bool:
        """Take a node's answer to a broadcast of `start`, at `version`; return False if the clock has moved.

        An answer to an earlier clock, a second one, or that of a removed node has no effect.
        """
        if start != self.start or node not in self._waiting:
            return True
        self._timings[node] = self._timings[node]._replace(version=version)
        if version < start:
            self._waiting.discard(node)
            return True
        self._waiting = set(self._timings)
        self.start = start_version(self._timings.values())
        return False

    def remove(self, node: str) -> None:
        """Stop waiting for a node that has died."""
        self._timings.pop(node, None)
        self._waiting.discard(node)
