"""The groups of one action: its own line, or its number on a line that all actions share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features._kernels import add_constant, gather, merge_shared
from onlineauto.jit import kernel

if TYPE_CHECKING:
    from onlineauto.features._kernels import Columns, Layout, Scratch

CONSTANT_AT = 0
"""Place of the constant's feature in the scratch columns; groups use what lies behind it."""


@kernel
def open_shared(layout: Layout, scratch: Scratch, columns: Columns, line: int) -> tuple[int, int]:
    """Gather a shared line into groups [0, n); return n and the number of features in use."""
    first, last = columns.line_start[line], columns.line_start[line + 1]
    return gather(
        layout,
        scratch,
        columns.span_namespace,
        columns.span_start,
        columns.hash,
        columns.value,
        first,
        last,
        0,
        1,
    )


@kernel
def open_line(
    layout: Layout, scratch: Scratch, columns: Columns, line: int, n_shared: int, used: int
) -> tuple[int, int]:
    """Groups of an action line, from `n_shared` on: its own, the constant, the shared ones.

    Returns the end of the groups and the number of own features, constant included.
    """
    first, last = columns.line_start[line], columns.line_start[line + 1]
    groups, end = gather(
        layout,
        scratch,
        columns.span_namespace,
        columns.span_start,
        columns.hash,
        columns.value,
        first,
        last,
        n_shared,
        used,
    )
    own = end - used
    with_constant = add_constant(layout, scratch, CONSTANT_AT, groups)
    own += with_constant - groups
    groups, end = merge_shared(scratch, n_shared, n_shared, with_constant, end)
    return groups, own


@kernel
def open_numbered(scratch: Scratch, n_shared: int, used: int, bits: int, action: int) -> tuple[int, int]:
    """Groups of action `action` of ``--cb N``: those of the line, the low `bits` of each hash replaced by it.

    Returns the end of the groups and the number of features.
    """
    begin = used
    keep = ~np.uint32(bits)
    for shared in range(n_shared):
        group = n_shared + shared
        key = scratch.group_key[shared]
        scratch.where[key] = group
        scratch.group_key[group] = key
        scratch.group_squares[group] = scratch.group_squares[shared]
        scratch.group_start[group] = used
        for i in range(scratch.group_start[shared], scratch.group_end[shared]):
            scratch.hash[used] = np.uint32((scratch.hash[i] & keep) + np.uint32(action))
            scratch.value[used] = scratch.value[i]
            used += 1
        scratch.group_end[group] = used
    return 2 * n_shared, used - begin
