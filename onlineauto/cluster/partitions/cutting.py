"""Cut a block into blocks of consecutive events that share no memory, and join blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.features.block import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

_OF_LINES = ("start", "cost", "tag")
"""Fields of lines that are offsets into other arrays."""


def cut_block(block: Block, begin: int, end: int) -> Block:
    """Return a copy of the events [begin, end) of a block, with only their records."""
    starts = block.event_start[begin : end + 1]
    lines = block.lines[starts[0] : starts[-1] + 1].copy()
    ends = {name: (int(lines[name][0]), int(lines[name][-1])) for name in _OF_LINES}
    spans = block.spans[ends["start"][0] : ends["start"][1] + 1].copy()
    first, last = int(spans["start"][0]), int(spans["start"][-1])
    for name, (offset, _) in ends.items():
        lines[name] -= offset
    spans["start"] -= first
    return Block(
        event_start=starts - starts[0],
        lines=lines,
        costs=block.costs[slice(*ends["cost"])],
        spans=spans,
        features=block.features[first:last],
        tag=block.tag[slice(*ends["tag"])],
        namespaces=block.namespaces,
        rules=block.rules,
        objects=block.objects,
    )


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Return one block with the events of consecutive blocks of a stream."""
    if len(blocks) == 1:
        return blocks[0]
    parts = [cut_block(each, 0, len(each)) for each in blocks]
    lines = _joined([each.lines for each in parts])
    for name, sizes in (
        ("start", [len(each.spans) - 1 for each in parts]),
        ("cost", [len(each.costs) for each in parts]),
        ("tag", [len(each.tag) for each in parts]),
    ):
        _shift(lines, name, sizes, [each.n_lines for each in parts])
    spans = _joined([each.spans for each in parts])
    _shift(spans, "start", [each.n_features for each in parts], [len(each.spans) - 1 for each in parts])
    offsets = np.cumsum([0, *(each.n_lines for each in parts)])
    starts = [each.event_start[:-1] + offset for each, offset in zip(parts, offsets[:-1], strict=True)]
    return Block(
        event_start=np.append(np.concatenate(starts), offsets[-1]),
        lines=lines,
        costs=np.concatenate([each.costs for each in parts]),
        spans=spans,
        features=np.concatenate([each.features for each in parts]),
        tag=np.concatenate([each.tag for each in parts]),
        namespaces=blocks[0].namespaces,
        rules=blocks[0].rules,
        objects=blocks[0].objects,
    )


def _joined(parts: Sequence[Any]) -> Any:
    """Return records of several blocks, with one sentinel at the end."""
    return np.concatenate([*(each[:-1] for each in parts), parts[-1][-1:]])


def _shift(records: Any, name: str, sizes: Sequence[int], counts: Sequence[int]) -> None:
    """Add to the offsets of each part the sizes of the parts before; `counts` are their records."""
    before = np.cumsum([0, *sizes])
    records[name][:-1] += np.repeat(before[:-1], counts).astype(records[name].dtype)
    records[name][-1] = before[-1]
