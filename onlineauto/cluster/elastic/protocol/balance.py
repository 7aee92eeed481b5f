"""``balance``: assign blocks to servers with about equal load and few moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def balance(sizes: Mapping[int, int], owner: Mapping[int, str], servers: Sequence[str]) -> dict[int, str]:
    """Return the owner of each block among `servers`, given the current owners.

    Blocks without an owner are assigned, the largest first, to the server with the least load. Then blocks
    move from the fullest to the emptiest server as long as this decreases their difference. In the end the
    difference is smaller than the smallest block of the fullest server.

    Examples
    --------
    >>> balance({0: 1, 1: 1, 2: 1, 3: 1}, {0: "a", 1: "a", 2: "a", 3: "a"}, ["a", "b"])
    {0: 'b', 1: 'b', 2: 'a', 3: 'a'}

    Source: best-fit decreasing; Peng et al., *DL2*, 2021, section 5, moves blocks one server at a time.
    """
    load = dict.fromkeys(servers, 0)
    result: dict[int, str] = {}
    for block, size in sizes.items():
        if (home := owner.get(block)) in load:
            result[block] = home
            load[home] += size
    for block in sorted(sizes.keys() - result.keys(), key=lambda block: (-sizes[block], block)):
        result[block] = emptiest = min(servers, key=load.__getitem__)
        load[emptiest] += sizes[block]
    while (move := _helpful_move(sizes, result, load)) is not None:
        block, source, target = move
        result[block] = target
        load[source] -= sizes[block]
        load[target] += sizes[block]
    return {block: result[block] for block in sizes}


def _helpful_move(
    sizes: Mapping[int, int], owner: Mapping[int, str], load: Mapping[str, int]
) -> tuple[int, str, str] | None:
    """Return a block, the fullest server that has it, and the emptiest server; None if no move helps."""
    source, target = max(load, key=load.__getitem__), min(load, key=load.__getitem__)
    gap = load[source] - load[target]
    movable = [block for block, home in owner.items() if home == source and 0 < sizes[block] < gap]
    if not movable:
        return None
    return min(movable, key=lambda block: (abs(2 * sizes[block] - gap), block)), source, target
