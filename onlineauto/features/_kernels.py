"""From lines of a stream to the groups of an example: gather by namespace, add the constant, merge.

A *group* is the features of one namespace of one example, contiguous in the scratch. VW's order of groups:
those of the action in order of first appearance, the constant, those of the shared line that the action does
not have. A namespace in both has the action's features first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import inline_kernel, kernel

if TYPE_CHECKING:
    from onlineauto.features.records import Layout, Scratch, Stream

CONSTANT_HASH = np.uint32(11650396)
CONSTANT_AT = 0
"""Place of the constant among the scratch's features; groups use what lies behind it."""

_ONE = np.float32(1)
_ZERO = np.float32(0)


@inline_kernel
def _open_groups(layout: Layout, scratch: Scratch, stream: Stream, line: int, groups: int) -> int:
    """Make a group for each kept namespace of a line, sized, and return how many there are then."""
    begin = groups
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        key = layout.key[stream.spans[span].namespace]
        if layout.ignore[key]:
            continue
        group = scratch.where[key]
        if group < begin:
            group = groups
            groups += 1
            scratch.where[key] = group
            scratch.groups[group].key = key
            scratch.groups[group].end = 0
            scratch.groups[group].squares = _ZERO
        scratch.groups[group].end += stream.spans[span + 1].start - stream.spans[span].start
    return groups


@inline_kernel
def gather(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, groups: int, used: int
) -> tuple[int, int]:
    """Copy a line's features into groups from number `groups` on, features from `used` on.

    Returns the numbers of groups and features then in use. `where` points at the new groups.
    """
    begin = groups
    groups = _open_groups(layout, scratch, stream, line, groups)
    for group in range(begin, groups):
        size = scratch.groups[group].end
        scratch.groups[group].start = used
        scratch.groups[group].end = used
        used += size
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        key = layout.key[stream.spans[span].namespace]
        if layout.ignore[key]:
            continue
        group = scratch.where[key]
        at = scratch.groups[group].end
        squares = scratch.groups[group].squares
        for i in range(stream.spans[span].start, stream.spans[span + 1].start):
            value = stream.features[i].value
            scratch.features[at].hash = stream.features[i].hash
            scratch.features[at].value = value
            squares += value * value
            at += 1
        scratch.groups[group].end = at
        scratch.groups[group].squares = squares
    return groups, used


@inline_kernel
def forget(scratch: Scratch, first: int, last: int) -> None:
    """Clear `where` for groups [first, last)."""
    for group in range(first, last):
        scratch.where[scratch.groups[group].key] = -1


@inline_kernel
def _add_constant(layout: Layout, scratch: Scratch, groups: int) -> int:
    """Append the constant as a group; return the number of groups."""
    if layout.constant_key < 0:
        return groups
    scratch.where[layout.constant_key] = groups
    scratch.groups[groups].key = layout.constant_key
    scratch.groups[groups].start = CONSTANT_AT
    scratch.groups[groups].end = CONSTANT_AT + 1
    scratch.groups[groups].squares = _ONE
    return groups + 1


@inline_kernel
def _append(scratch: Scratch, first: int, last: int, used: int) -> int:
    """Copy features [first, last) behind those in use; return how many are then in use."""
    for i in range(first, last):
        scratch.features[used].hash = scratch.features[i].hash
        scratch.features[used].value = scratch.features[i].value
        used += 1
    return used


@kernel
def _merge_shared(scratch: Scratch, n_shared: int, groups: int, used: int) -> int:
    """Join the shared groups [0, n_shared) to an action's groups [n_shared, groups); return their end."""
    for s in range(n_shared):
        shared = scratch.groups[s]
        own = scratch.where[shared.key]
        if own < n_shared:
            scratch.where[shared.key] = groups
            scratch.groups[groups].key = shared.key
            scratch.groups[groups].start = shared.start
            scratch.groups[groups].end = shared.end
            scratch.groups[groups].squares = shared.squares
            groups += 1
        else:
            start = used
            used = _append(scratch, scratch.groups[own].start, scratch.groups[own].end, used)
            used = _append(scratch, shared.start, shared.end, used)
            scratch.groups[own].start = start
            scratch.groups[own].end = used
            scratch.groups[own].squares += shared.squares
    return groups


@inline_kernel
def open_line(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, n_shared: int, used: int
) -> tuple[int, int]:
    """Groups of a line, from `n_shared` on: its own, the constant, the shared ones [0, n_shared).

    Returns the end of the groups and the number of own features, constant included.
    """
    groups, end = gather(layout, scratch, stream, line, n_shared, used)
    with_constant = _add_constant(layout, scratch, groups)
    own = end - used + with_constant - groups
    return _merge_shared(scratch, n_shared, with_constant, end), own


@kernel
def open_numbered(scratch: Scratch, n_shared: int, used: int, bits: int, action: int) -> tuple[int, int]:
    """Groups of an action of ``--cb N``: the shared ones, the low `bits` of each hash being its number.

    Returns the end of the groups and the number of features.
    """
    begin = used
    keep = ~np.uint32(bits)
    for s in range(n_shared):
        group = n_shared + s
        shared = scratch.groups[s]
        scratch.where[shared.key] = group
        scratch.groups[group].key = shared.key
        scratch.groups[group].squares = shared.squares
        scratch.groups[group].start = used
        for i in range(shared.start, shared.end):
            scratch.features[used].hash = np.uint32((scratch.features[i].hash & keep) + np.uint32(action))
            scratch.features[used].value = scratch.features[i].value
            used += 1
        scratch.groups[group].end = used
    return 2 * n_shared, used - begin
