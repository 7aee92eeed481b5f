"""``assign``: divide blocks among servers with about equal loads, and move as little as possible."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Name = TypeVar("Name", bound=Hashable)
"""The name of a block."""


def assign(
    sizes: Mapping[Name, float], owners: Mapping[Name, int], servers: Sequence[int]
) -> dict[Name, int]:
    """Return the server of each block, given the sizes of blocks and their present owners.

    1. A block whose owner is among `servers` stays there at first.
    2. Each other block, the largest first, goes to the server with the least load.
    3. While it decreases their difference, a block moves from the fullest to the emptiest server. Blocks
       that have left their owner anyway move first, then those of at most half of the difference, then the
       others; among these the one nearest to half of the difference.

    At the end loads differ by at most the largest block. Blocks of equal size move as rarely as possible.
    The result depends on the order of `sizes` and of `servers`, and on nothing else.

    Examples
    --------
    >>> assign({"a": 1, "b": 1, "c": 1, "d": 1}, {"a": 0, "b": 0, "c": 0, "d": 0}, [0, 1])
    {'a': 1, 'b': 1, 'c': 0, 'd': 0}

    Source: best-fit decreasing; Peng et al., *DL2*, 2021, section 5, moves blocks for one server at a time.
    """
    load: dict[int, float] = dict.fromkeys(servers, 0.0)
    result = {block: owners[block] for block in sizes if owners.get(block) in load}
    for block, server in result.items():
        load[server] += sizes[block]
    for block in sorted((block for block in sizes if block not in result), key=lambda block: -sizes[block]):
        result[block] = emptiest = min(servers, key=load.__getitem__)
        load[emptiest] += sizes[block]
    while True:
        source, target = max(servers, key=load.__getitem__), min(servers, key=load.__getitem__)
        gap = load[source] - load[target]
        movable = [block for block in sizes if result[block] == source and 0 < sizes[block] < gap]
        if not movable:
            return {block: result[block] for block in sizes}

        def cost(block: Name, gap: float = gap, source: int = source) -> tuple[bool, bool, float]:
            beyond = 2 * sizes[block] - gap
            return owners.get(block) == source, beyond > 0, abs(beyond)

        block = min(movable, key=cost)
        result[block] = target
        load[source] -= sizes[block]
        load[target] += sizes[block]
