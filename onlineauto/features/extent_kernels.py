"""Extents: runs of features of one full name within the group of its first byte.

Only exact mode needs them (``--experimental_full_name_interactions``); elsewhere a group has one name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.features._kernels import is_covered, turned
from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Interactions, Layout, Scratch, Stream


@inline_kernel
def _append(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, key: int, at: int, count: int
) -> tuple[int, int]:
    """Append the extents of group `key` on a line; neighbours of one name become one."""
    begin = count
    extents, spans = scratch.extents, stream.spans
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        name = spans[span].namespace
        if layout.key[name] != key:
            continue
        size = spans[span + 1].start - spans[span].start
        if count > begin and extents[count - 1].name == name:
            extents[count - 1].end = at + size
        else:
            extents[count].name = name
            extents[count].start = at
            extents[count].end = at + size
            count += 1
        at += size
    return at, count


@inline_kernel
def _join(scratch: Scratch, begin: int, middle: int, count: int) -> int:
    """Join own extents [begin, middle) and shared ones [middle, count), as VW's `features::concat` does.

    If the last own name is the first shared one they become one extent, and the last shared one is lost.
    """
    extents = scratch.extents
    if begin == middle or middle == count or extents[middle - 1].name != extents[middle].name:
        return count
    extents[middle - 1].end = extents[middle].end
    kept = middle
    for i in range(middle + 1, count - 1):
        extents[kept].name = extents[i].name
        extents[kept].start = extents[i].start
        extents[kept].end = extents[i].end
        kept += 1
    return kept


@kernel
def list_extents(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, shared_line: int, n_shared: int, groups: int
) -> None:
    """List the extents of the groups of an example: `line` and, if not -1, `shared_line`."""
    count = 0
    for i in range(groups):
        group = turned(i, n_shared, groups)
        key = scratch.groups[group].key
        if key == layout.constant_key or is_covered(scratch, group, n_shared):
            continue
        first = count
        at, count = _append(layout, scratch, stream, line, key, scratch.groups[group].start, count)
        if shared_line >= 0:
            middle = count
            at, count = _append(layout, scratch, stream, shared_line, key, at, count)
            count = _join(scratch, first, middle, count)
    scratch.extents[count].name = -1


@inline_kernel
def count_named(scratch: Scratch, name: int) -> int:
    """Number of extents called `name`."""
    count = 0
    i = 0
    while scratch.extents[i].name >= 0:
        if scratch.extents[i].name == name:
            count += 1
        i += 1
    return count


@inline_kernel
def choose_extent(scratch: Scratch, k: int, name: int) -> None:
    """Let factor k range over its `choice`-th extent, of those called `name`."""
    left = scratch.factors[k].choice
    i = 0
    while scratch.extents[i].name >= 0:
        if scratch.extents[i].name == name:
            if left == 0:
                scratch.factors[k].start = scratch.extents[i].start
                scratch.factors[k].end = scratch.extents[i].end
                return
            left -= 1
        i += 1


@inline_kernel
def lowest_choice(interactions: Interactions, scratch: Scratch, first: int, k: int) -> int:
    """First extent that factor k may take: not before the one of the same factor before it."""
    if k > 0 and interactions.factor[first + k] == interactions.factor[first + k - 1]:
        return int(scratch.factors[k - 1].choice)
    return 0
