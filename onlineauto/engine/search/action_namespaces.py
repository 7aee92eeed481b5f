"""The namespaces of an event that belong to its actions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlineauto.features.block import Block


def of_actions(block: Block, event: int) -> frozenset[bytes]:
    """Return the names of the namespaces of an event that belong to its actions.

    With a ``shared`` line, these are the namespaces on the lines of actions. Without one, shared features may
    be repeated on each line, so these are the namespaces that differ between lines; none for a single line.
    """
    first, last = int(block.event_start[event]), int(block.event_start[event + 1])
    last -= int(np.count_nonzero(block.slot[first:last]))
    if block.shared[first]:
        spans = block.span_namespace[block.line_start[first + 1] : block.line_start[last]]
        return frozenset(block.namespaces.names[number] for number in set(spans.tolist()))
    if last - first == 1:
        return frozenset()
    lines = [_contents(block, line) for line in range(first, last)]
    names = set().union(*lines)
    return frozenset(
        block.namespaces.names[number]
        for number in names
        if any(line.get(number) != lines[0].get(number) for line in lines)
    )


def _contents(block: Block, line: int) -> dict[int, bytes]:
    """Return the features of a line, as bytes, by the number of their namespace."""
    contents: dict[int, bytes] = {}
    for span in range(int(block.line_start[line]), int(block.line_start[line + 1])):
        begin, end = int(block.span_start[span]), int(block.span_start[span + 1])
        number = int(block.span_namespace[span])
        contents[number] = contents.get(number, b"") + block.features[begin:end].tobytes()
    return contents
