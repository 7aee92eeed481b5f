"""Cut a stream of blocks into blocks of a number of events, which share no memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.engine.event.outcomes import Outcomes
from onlineauto.features.block import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def cut_block(block: Block, begin: int, end: int) -> Block:
    """Return a copy of the events [begin, end) of a block, with only their records."""
    return join_blocks([block.head(end).tail(begin)])


def join_blocks(blocks: Sequence[Block]) -> Block:
    """Return one block with copies of the events of consecutive blocks of a stream."""
    first = blocks[0]
    lines, line_ends = _taken(
        [block.lines for block in blocks], [_ends(block.event_start) for block in blocks]
    )
    spans, span_ends = _taken(
        [block.spans for block in blocks], [_ends(lines_of["start"]) for lines_of in lines]
    )
    costs = [_ends(lines_of["cost"]) for lines_of in lines]
    tags = [_ends(lines_of["tag"]) for lines_of in lines]
    features = [_ends(spans_of["start"]) for spans_of in spans]
    starts = [block.event_start for block in blocks]
    all_lines, all_spans = _joined(lines), _joined(spans)
    _shift(all_lines, "start", span_ends, lines)
    _shift(all_lines, "cost", costs, lines)
    _shift(all_lines, "tag", tags, lines)
    _shift(all_spans, "start", features, spans)
    offsets = _offsets(line_ends)
    event_starts = [
        start[:-1] - ends[0] + offset for start, ends, offset in zip(starts, line_ends, offsets, strict=False)
    ]
    return Block(
        event_start=np.append(np.concatenate(event_starts), offsets[-1]),
        lines=all_lines,
        costs=_concatenated([block.costs for block in blocks], costs),
        spans=all_spans,
        features=_concatenated([block.features for block in blocks], features),
        tag=_concatenated([block.tag for block in blocks], tags),
        namespaces=first.namespaces,
        rules=first.rules,
        objects=first.objects,
    )


def join_outcomes(n_lines: Sequence[int], outcomes: Sequence[Outcomes]) -> Outcomes:
    """Return the outcomes of consecutive blocks of `n_lines` lines, without slots, as those of one block."""
    lines = _offsets([(0, n) for n in n_lines])
    actions = _offsets([(0, len(part.action)) for part in outcomes])
    rows = np.concatenate([part.rows for part in outcomes])
    rows["action_start"] += np.repeat(actions[:-1], [len(part) for part in outcomes])
    line = [part.line + offset for part, offset in zip(outcomes, lines, strict=False)]
    names = ("weight", "holdout", "label", "action", "score")
    others: Any = {name: np.concatenate([getattr(part, name) for part in outcomes]) for name in names}
    return Outcomes(rows=rows, line=np.concatenate(line), **others)


def take_events(blocks: Sequence[Block], begin: int, end: int) -> Block:
    """Return a copy of the events [begin, end) of consecutive blocks."""
    parts, offset = [], 0
    for block in blocks:
        cut = max(begin - offset, 0), min(end - offset, len(block))
        if cut[0] < cut[1]:
            parts.append(block.head(cut[1]).tail(cut[0]))
        offset += len(block)
    return join_blocks(parts)


def events_after(blocks: Sequence[Block], n: int) -> list[Block]:
    """Return consecutive blocks without their first `n` events, over the same records."""
    after = []
    for block in blocks:
        if n < len(block):
            after.append(block.tail(n))
        n = max(n - len(block), 0)
    return after


def _ends(starts: Any) -> tuple[int, int]:
    return int(starts[0]), int(starts[-1])


def _offsets(ends: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    """Return where each part begins if the parts [begin, end) are joined, and where the last one ends."""
    return np.cumsum([0, *(end - begin for begin, end in ends)])


def _taken(
    records: Sequence[Any], ends: Sequence[tuple[int, int]]
) -> tuple[list[Any], Sequence[tuple[int, int]]]:
    """Return the records [begin, end] of each array, the sentinel included."""
    return [record[begin : end + 1] for record, (begin, end) in zip(records, ends, strict=True)], ends


def _joined(parts: Sequence[Any]) -> Any:
    """Return a copy of the records of several parts, with one sentinel of zeros at the end."""
    return np.concatenate([*(part[:-1] for part in parts), np.zeros(1, parts[-1].dtype)])


def _concatenated(arrays: Sequence[Any], ends: Sequence[tuple[int, int]]) -> Any:
    return np.concatenate([array[begin:end] for array, (begin, end) in zip(arrays, ends, strict=True)])


def _shift(records: Any, name: str, ends: Sequence[tuple[int, int]], parts: Sequence[Any]) -> None:
    """Change offsets into arrays of which [begin, end) of each part was taken."""
    offsets = _offsets(ends)
    moves = [offset - begin for offset, (begin, _) in zip(offsets, ends, strict=False)]
    counts = [len(part) - 1 for part in parts]
    column = records[name]
    column[:-1] += np.repeat(moves, counts).astype(column.dtype)
    column[-1] = offsets[-1]
