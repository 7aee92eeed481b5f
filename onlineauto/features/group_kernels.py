"""Turn lines of a stream into the groups of an example: find them by namespace, add the constant, merge.

A *group* is the features of one namespace of one example, contiguous among the stream's features. Features
read in one part stay in place; features read in several parts are copied to the free space after all
features. VW's order of groups is: those of the action in order of first appearance, the constant, then those
of the shared line that the action does not have. A namespace in both has the action's features first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.jit import F32, inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from onlineauto.features.records import Layout, Numbering, Records, Scratch, Stream

_ZERO = np.float32(0)


@inline_kernel
def _copy(features: Records, first: int, last: int, free: int) -> int:
    """Copy features [first, last) to the free space from index `free` on; return the end of the copies."""
    for i in range(first, last):
        short_loop()
        features[free].hash = features[i].hash
        features[free].value = features[i].value
        free += 1
    return free


@inline_kernel
def _set_bounds(scratch: Scratch, group: int, start: int, end: int) -> None:
    """Set the features of a group to [start, end)."""
    key = scratch.groups[group].key
    scratch.groups[group].start = scratch.places[key].start = start
    scratch.groups[group].end = scratch.places[key].end = end


@inline_kernel
def _open_group(scratch: Scratch, group: int, key: int, start: int, end: int) -> None:
    """Make a group, which covers the shared line's group of the same key if that exists."""
    scratch.groups[group].key = key
    scratch.groups[group].behind = 0
    scratch.groups[group].covered = scratch.places[key].group
    scratch.places[key].group = group
    _set_bounds(scratch, group, start, end)


@inline_kernel
def forget(scratch: Scratch, first: int, last: int) -> None:
    """Remove groups [first, last); the shared groups that they cover become visible again."""
    for group in range(first, last):
        short_loop()
        key, covered = scratch.groups[group].key, scratch.groups[group].covered
        scratch.places[key].group = covered
        scratch.places[key].start = scratch.groups[covered].start if covered >= 0 else 0
        scratch.places[key].end = scratch.groups[covered].end if covered >= 0 else 0


@inline_kernel
def _key_of(layout: Layout, stream: Stream, span: int) -> int:
    return layout.key[stream.spans[span].namespace]


@inline_kernel
def _key_in_slot(layout: Layout, stream: Stream, span: int) -> int:
    """Return the group key of a slot's span; features without a namespace have a separate key in slots."""
    key = _key_of(layout, stream, span)
    return layout.slot_key if key == layout.default_key else key


@inline_kernel
def _count_span(scratch: Scratch, stream: Stream, span: int, key: int, begin: int, groups: int) -> int:
    """Add the size of a span to its group, which is made if missing; return the number of groups."""
    if scratch.places[key].group < begin:
        _open_group(scratch, groups, key, 0, 0)
        groups += 1
    scratch.groups[scratch.places[key].group].end += stream.spans[span + 1].start - stream.spans[span].start
    return groups


@inline_kernel
def _copy_span(scratch: Scratch, stream: Stream, span: int, key: int) -> None:
    """Append the features of a span to the copied features of its group."""
    at = scratch.places[key].end
    start, end = stream.spans[span].start, stream.spans[span + 1].start
    _set_bounds(scratch, scratch.places[key].group, scratch.places[key].start, at + end - start)
    _copy(stream.features, start, end, at)


@kernel
def _copy_line(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, slot: int, begin: int, free: int
) -> tuple[int, int, int]:
    """Copy and join the features of a line, and of `slot` unless -1, into groups; return as `open_line`."""
    groups, first = begin, free
    spans = stream.lines[line].start, stream.lines[line + 1].start
    more = (
        (stream.lines[slot].start, stream.lines[slot + 1].start) if slot >= 0 else (np.int64(0), np.int64(0))
    )
    for span in range(spans[0], spans[1]):
        short_loop()
        key = _key_of(layout, stream, span)
        if not layout.ignore[key]:
            groups = _count_span(scratch, stream, span, key, begin, groups)
    for i in range(scratch.n_left[0] if slot >= 0 else 0):
        if scratch.places[scratch.left[i]].group < begin:
            _open_group(scratch, groups, scratch.left[i], 0, 0)
            groups += 1
    for span in range(more[0], more[1]):
        short_loop()
        if not layout.ignore[_key_of(layout, stream, span)]:
            groups = _count_span(scratch, stream, span, _key_in_slot(layout, stream, span), begin, groups)
    for group in range(begin, groups):
        short_loop()
        size = scratch.groups[group].end
        _set_bounds(scratch, group, free, free)
        free += size
    for span in range(spans[0], spans[1]):
        short_loop()
        key = _key_of(layout, stream, span)
        if not layout.ignore[key]:
            _copy_span(scratch, stream, span, key)
    for span in range(more[0], more[1]):
        short_loop()
        if not layout.ignore[_key_of(layout, stream, span)]:
            _copy_span(scratch, stream, span, _key_in_slot(layout, stream, span))
    return groups, free - first, free


@kernel
def leave_slot(layout: Layout, scratch: Scratch, stream: Stream, line: int, slot: int, indexed: bool) -> None:
    """Record the namespaces that VW keeps on the list of the shared line after a slot.

    These namespaces have no features, but they determine the order of the next slot's namespaces. If slots
    have an index feature (`indexed`), all namespaces stay. Otherwise VW visits them in order and removes a
    namespace that is the last of the list at that time.
    """
    left, n = scratch.left, scratch.n_left
    for span in range(stream.lines[slot].start, stream.lines[slot + 1].start):
        key = _key_in_slot(layout, stream, span)
        if not (
            layout.ignore[_key_of(layout, stream, span)] or _is_listed(layout, scratch, stream, line, key)
        ):
            left[n[0]] = key
            n[0] += 1
    for span in range(stream.lines[slot].start, 0 if indexed else stream.lines[slot + 1].start):
        if n[0] > 0 and left[n[0] - 1] == _key_in_slot(layout, stream, span):
            n[0] -= 1


@kernel
def _is_listed(layout: Layout, scratch: Scratch, stream: Stream, line: int, key: int) -> bool:
    """Return whether a namespace remains from an earlier slot, or is on a line."""
    for i in range(scratch.n_left[0]):
        if scratch.left[i] == key:
            return True
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        if _key_of(layout, stream, span) == key:
            return True
    return False


@inline_kernel
def open_slot(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, slot: int, index: int, free: int
) -> tuple[int, int, int]:
    """Make the groups of a shared line and a slot, each with a namespace's features of both.

    `index` is the index of the feature that identifies the slot, -1 for none. Returns the number of groups,
    the number of features of both lines, and the end of the used space.
    """
    groups, size, free = _copy_line(layout, scratch, stream, line, slot, 0, free)
    if index >= 0:
        _open_group(scratch, groups, layout.index_key, index, index + 1)
        groups += 1
    return groups, size, free


@inline_kernel
def open_line(
    layout: Layout, scratch: Scratch, stream: Stream, line: int, begin: int, free: int
) -> tuple[int, int, int]:
    """Make a group for each namespace of a line that is not ignored, from number `begin` on.

    Returns the number of groups, the number of features of the line, and the end of the used space.
    """
    groups, size = begin, 0
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        key = layout.key[stream.spans[span].namespace]
        if layout.ignore[key]:
            continue
        start, end = stream.spans[span].start, stream.spans[span + 1].start
        size += end - start
        group = scratch.places[key].group
        if group < begin:
            _open_group(scratch, groups, key, start, end)
            groups += 1
        elif scratch.groups[group].end == start:
            _set_bounds(scratch, group, scratch.groups[group].start, end)
        else:
            forget(scratch, begin, groups)
            return _copy_line(layout, scratch, stream, line, -1, begin, free)
    return groups, size, free


@inline_kernel
def open_constant(layout: Layout, scratch: Scratch, stream: Stream, n_shared: int, groups: int) -> int:
    """Append the constant as a group and return the number of groups."""
    key = layout.constant_key
    if key < 0:
        return groups
    own = scratch.places[key].group
    _open_group(scratch, groups, key, stream.constant, stream.constant + 1)
    if own >= n_shared:  # a namespace has the constant's key: keys may be first bytes
        scratch.groups[groups].covered = scratch.groups[own].covered
        scratch.groups[own].covered = -1
    return groups + 1


@inline_kernel
def merge_shared(scratch: Scratch, stream: Stream, n_shared: int, groups: int, free: int) -> bool:
    """Append to groups [n_shared, groups) the shared features they cover; return whether there are any."""
    merged = False
    for group in range(n_shared, groups):
        short_loop()
        covered = scratch.groups[group].covered
        if covered >= 0:
            merged = True
            behind = scratch.groups[covered].end - scratch.groups[covered].start
            start, end = scratch.groups[group].start, scratch.groups[group].end
            _set_bounds(scratch, group, free, free + end - start + behind)
            scratch.groups[group].behind = behind
            free = _copy(stream.features, start, end, free)
            free = _copy(stream.features, scratch.groups[covered].start, scratch.groups[covered].end, free)
    return merged


@inline_kernel
def group_in_vw_order(i: int, n_shared: int, groups: int) -> int:
    """Return the i-th group of an example in VW's order: the action's groups, then the shared line's."""
    return i + n_shared if i + n_shared < groups else i + n_shared - groups


@inline_kernel
def is_covered(scratch: Scratch, group: int, n_shared: int) -> bool:
    """Return whether a group of the shared line is covered by a group of the action."""
    return bool(group < n_shared and scratch.places[scratch.groups[group].key].group != group)


@kernel
def open_numbered(
    scratch: Scratch, features: Records, n_shared: int, free: int, numbering: Numbering, action: int
) -> tuple[int, int]:
    """Make the groups of an action of ``--cb N``: the shared groups, with the action's number in the hashes.

    Returns the number of groups and the number of features.
    """
    begin = free
    for s in range(n_shared):
        short_loop()
        start, end = scratch.groups[s].start, scratch.groups[s].end
        _open_group(scratch, n_shared + s, scratch.groups[s].key, free, free + end - start)
        scratch.groups[n_shared + s].covered = s
        for i in range(start, end):
            features[free].hash = (
                np.uint32((features[i].hash & numbering.kept) + np.uint32(action)) & numbering.mask
            )
            features[free].value = features[i].value
            free += 1
    return 2 * n_shared, free - begin


@inline_kernel
def squares_of(features: Records, start: int, end: int) -> F32:
    """Return Σ x² (float32) of features [start, end)."""
    total = _ZERO
    for i in range(start, end):
        short_loop()
        total += features[i].value * features[i].value
    return total


@inline_kernel
def squares_of_group(scratch: Scratch, features: Records, group: int) -> F32:
    """Return Σ x² (float32) of a group; VW sums its two parts separately."""
    middle = scratch.groups[group].end - scratch.groups[group].behind
    squares = squares_of(features, scratch.groups[group].start, middle)
    if scratch.groups[group].behind > 0:
        squares += squares_of(features, middle, scratch.groups[group].end)
    return squares
