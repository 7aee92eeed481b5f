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
    lines, line_ends = _taken([each.lines for each in blocks], [_ends(each.event_start) for each in blocks])
    spans, span_ends = _taken(
        [each.spans for each in blocks], [_ends(lines_of["start"]) for lines_of in lines]
    )
    costs = [_ends(lines_of["cost"]) for lines_of in lines]
    tags = [_ends(lines_of["tag"]) for lines_of in lines]
    features = [_ends(spans_of["start"]) for spans_of in spans]
    starts = [each.event_start for each in blocks]
    all_lines, all_spans = _joined(lines), _joined(spans)
    _shift(all_lines, "start", span_ends, lines)
    _shift(all_lines, "cost", costs, lines)
    _shift(all_lines, "tag", tags, lines)
    _shift(all_spans, "start", features, spans)
    offsets = _offsets(line_ends)
    event_starts = [
        own[:-1] - ends[0] + at for own, ends, at in zip(starts, line_ends, offsets, strict=False)
    ]
    return Block(
        event_start=np.append(np.concatenate(event_starts), offsets[-1]),
        lines=all_lines,
        costs=_concatenated([each.costs for each in blocks], costs),
        spans=all_spans,
        features=_concatenated([each.features for each in blocks], features),
        tag=_concatenated([each.tag for each in blocks], tags),
        namespaces=first.namespaces,
        rules=first.rules,
        objects=first.objects,
    )


def join_outcomes(n_lines: Sequence[int], outcomes: Sequence[Outcomes]) -> Outcomes:
    """Return the outcomes of consecutive blocks of `n_lines` lines, without slots, as those of one block."""
    lines = _offsets([(0, n) for n in n_lines])
    actions = _offsets([(0, len(each.action)) for each in outcomes])
    rows = np.concatenate([each.rows for each in outcomes])
    rows["action_start"] += np.repeat(actions[:-1], [len(each) for each in outcomes])
    line = [each.line + at for each, at in zip(outcomes, lines, strict=False)]
    names = ("weight", "holdout", "label", "action", "score")
    others: Any = {name: np.concatenate([getattr(each, name) for each in outcomes]) for name in names}
    return Outcomes(rows=rows, line=np.concatenate(line), **others)


def take_events(blocks: Sequence[Block], begin: int, end: int) -> Block:
    """Return a copy of the events [begin, end) of consecutive blocks."""
    parts, at = [], 0
    for block in blocks:
        own = max(begin - at, 0), min(end - at, len(block))
        if own[0] < own[1]:
            parts.append(block.head(own[1]).tail(own[0]))
        at += len(block)
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
    return [each[begin : end + 1] for each, (begin, end) in zip(records, ends, strict=True)], ends


def _joined(parts: Sequence[Any]) -> Any:
    """Return a copy of the records of several parts, with one sentinel of zeros at the end."""
    return np.concatenate([*(each[:-1] for each in parts), np.zeros(1, parts[-1].dtype)])


def _concatenated(arrays: Sequence[Any], ends: Sequence[tuple[int, int]]) -> Any:
    return np.concatenate([each[begin:end] for each, (begin, end) in zip(arrays, ends, strict=True)])


def _shift(records: Any, name: str, ends: Sequence[tuple[int, int]], parts: Sequence[Any]) -> None:
    """Change offsets into arrays of which [begin, end) of each part was taken."""
    offsets = _offsets(ends)
    moves = [at - begin for at, (begin, _) in zip(offsets, ends, strict=False)]
    counts = [len(each) - 1 for each in parts]
    column = records[name]
    column[:-1] += np.repeat(moves, counts).astype(column.dtype)
    column[-1] = offsets[-1]
