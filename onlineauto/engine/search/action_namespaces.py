"""Which namespaces of an event are the actions'."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from onlineauto.features.block import Block

__all__ = ["of_actions"]


def of_actions(block: Block, event: int) -> frozenset[bytes]:
    """Names of an event's namespaces that belong to actions.

    With a ``shared`` line, those on the other lines that are no slots. Without one, where what is shared may
    be repeated on each line, those that are not the same on all of them. A single line tells nothing.
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
    """Features of a line by the number of their namespace, as bytes."""
    contents: dict[int, bytes] = {}
    for span in range(int(block.line_start[line]), int(block.line_start[line + 1])):
        begin, end = int(block.span_start[span]), int(block.span_start[span + 1])
        number = int(block.span_namespace[span])
        contents[number] = contents.get(number, b"") + block.features[begin:end].tobytes()
    return contents
