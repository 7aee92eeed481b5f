"""``Counts``: numbers of records by outcome."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Numbers of records by outcome."""

    # Decisions; and ignored decisions, whose id was in use at the time, or which a rank server sent twice.
    ranked: int = 0
    repeated: int = 0
    # Rewards; and those that arrived after the end of their decision or, with the aggregation ``first``,
    # after another one, that repeated another, or whose decision never arrived or could not be waited for
    # within the limits.
    rewarded: int = 0
    late: int = 0
    duplicate: int = 0
    dangling: int = 0
    joined: int = 0  # Decisions that ended with a reward, without one, or without having been activated.
    defaulted: int = 0
    inactive: int = 0
    # Rewards beyond the declared or learnt range, and sums beyond the declared range. Each is replaced by the
    # bound.
    clipped: int = 0
    # Finished decisions that were dropped before their wait was over, because the table was full.
    forgotten: int = 0
    # Records whose time is implausibly far from the record before: the join did not follow their clock.
    clock_jumps: int = 0
