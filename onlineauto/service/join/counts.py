"""``Counts``: numbers of records by outcome."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Numbers of records by outcome.

    Attributes
    ----------
    ranked, repeated : int
        Decisions; and ignored decisions, whose id was in use at the time, or which a rank server sent
        twice.
    rewarded, late, duplicate, dangling : int
        Rewards; and those that arrived after the end of their decision or, with the aggregation ``first``,
        after another one, that repeated another, or whose decision never arrived or could not be waited for
        within the limits.
    joined, defaulted, inactive : int
        Decisions that ended with a reward, without one, or without having been activated.
    clipped : int
        Rewards beyond the declared or learnt range, and sums beyond the declared range. Each is replaced by
        the bound.
    forgotten : int
        Finished decisions that were dropped before their wait was over, because the table was full.
    clock_jumps : int
        Records whose time is implausibly far from the record before: the join did not follow their clock.
    """

    ranked: int = 0
    repeated: int = 0
    rewarded: int = 0
    late: int = 0
    duplicate: int = 0
    dangling: int = 0
    joined: int = 0
    defaulted: int = 0
    inactive: int = 0
    clipped: int = 0
    forgotten: int = 0
    clock_jumps: int = 0
