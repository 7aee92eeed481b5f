"""``balanced``: give blocks to servers so that each has about as much, and few move."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def balanced(sizes: Mapping[int, int], owner: Mapping[int, str], servers: Sequence[str]) -> dict[int, str]:
    """Return the owner of each block among `servers`, given the present owners.

    Blocks without a home go, the largest first, to the server that has least. Then the fullest server gives
    blocks to the emptiest one as long as that brings the two closer together. In the end the two differ by
    less than the smallest block of the fullest.

    Examples
    --------
    >>> balanced({0: 1, 1: 1, 2: 1, 3: 1}, {0: "a", 1: "a", 2: "a", 3: "a"}, ["a", "b"])
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}

    Source: best-fit decreasing; Peng et al., *DL2*, 2021, section 5, moves blocks one server at a time.
    """
    load = dict.fromkeys(servers, 0)
    made: dict[int, str] = {}
    for block, size in sizes.items():
        if (home := owner.get(block)) in load:
            made[block] = home
            load[home] += size
    for block in sorted(sizes.keys() - made.keys(), key=lambda block: (-sizes[block], block)):
        made[block] = emptiest = min(servers, key=load.__getitem__)
        load[emptiest] += sizes[block]
    while (moving := _helpful_move(sizes, made, load)) is not None:
        block, giver, taker = moving
        made[block] = taker
        load[giver] -= sizes[block]
        load[taker] += sizes[block]
    return {block: made[block] for block in sizes}


def _helpful_move(
    sizes: Mapping[int, int], owner: Mapping[int, str], load: Mapping[str, int]
) -> tuple[int, str, str] | None:
    """Return a block of the fullest server that the emptiest should have, and both; None if none helps."""
    giver, taker = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
    gap = load[giver] - load[taker]
    found = [block for block, home in owner.items() if home == giver and 0 < sizes[block] < gap]
    if not found:
        return None
    return min(found, key=lambda block: (abs(2 * sizes[block] - gap), block)), giver, taker
