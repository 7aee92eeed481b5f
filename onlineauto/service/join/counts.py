"""``Counts``: numbers of records by what became of them."""

from __future__ import annotations

import msgspec


class Counts(msgspec.Struct):
    """Numbers of records by what became of them.

    Attributes
    ----------
    ranked, repeated : int
        Decisions; and decisions whose id another one had at the time, or records that a rank server sent
        twice, which are left out.
    rewarded, late, duplicate, dangling : int
        Rewards; and those that came behind the end of their decision, repeated another, or waited in vain
        for a decision, for which there may have been no room.
    joined, defaulted, inactive : int
        Decisions that ended with a reward, without one, or without having been activated.
    clipped : int
        Rewards beyond the range that is declared or learnt, and sums beyond the one that is declared, which
        count as its bound.
    forgotten : int
        Finished decisions that were forgotten before their wait was over, to make room for others.
    clock_jumps : int
        Records whose time is implausibly far from the one before: the time of the join stood still.
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
