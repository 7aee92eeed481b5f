"""Events as plain Python values, and the blocks made from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from onlineauto.features.block import DEFAULT, UNLABELLED, Block, Namespaces
from tests.naive.hashing import hash_name

Feature = tuple[int, float]
"""Hash and value."""

Span = tuple[bytes, tuple[Feature, ...]]
"""Namespace and features."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a file."""

    spans: tuple[Span, ...] = ()
    label: float | None = None
    weight: float = 1.0
    initial: float = 0.0
    shared: bool = False
    costs: tuple[tuple[int, float | None, float], ...] = ()
    """Action, cost, probability."""


Event = tuple[Line, ...]


def name_hash(name: bytes) -> int:
    return 0 if name == DEFAULT else hash_name(name, 0)


def _offsets(sizes: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.cumsum([0, *sizes]).astype(np.int64)


def make_block(
    events: Sequence[Event], namespaces: Namespaces | None = None, *, first_line: int = 1
) -> Block:
    """Return the columns of `events`; new names are added to `namespaces` in order of appearance."""
    names = Namespaces() if namespaces is None else namespaces
    lines = [line for event in events for line in event]
    spans = [[span for span in line.spans if span[1]] for line in lines]
    flat = [span for each in spans for span in each]
    for name, _ in flat:
        if name not in names.names:
            names.add(name, name_hash(name))
    features = [feature for _, each in flat for feature in each]
    costs = [cost for line in lines for cost in line.costs]
    numbers: list[int] = []
    number = first_line
    for event in events:
        numbers += range(number, number + len(event))
        number += len(event) + (len(event) > 1)
    return Block.of_columns(
        event_start=_offsets(map(len, events)),
        line_number=np.array(numbers, np.int64),
        line_start=_offsets(map(len, spans)),
        shared=np.array([line.shared for line in lines], bool),
        label=np.array([UNLABELLED if line.label is None else line.label for line in lines], np.float32),
        weight=np.array([line.weight for line in lines], np.float32),
        initial=np.array([line.initial for line in lines], np.float32),
        cost_start=_offsets(len(line.costs) for line in lines),
        cost_action=np.array([action for action, _, _ in costs], np.uint32),
        cost=np.array([UNLABELLED if cost is None else cost for _, cost, _ in costs], np.float32),
        probability=np.array([probability for _, _, probability in costs], np.float32),
        tag_start=np.zeros(len(lines) + 1, np.int64),
        tag=np.zeros(0, np.uint8),
        span_namespace=np.array([names.names.index(name) for name, _ in flat], np.int32),
        span_start=_offsets(len(each) for _, each in flat),
        hash=np.array([hash_ for hash_, _ in features], np.uint32),
        value=np.array([value for _, value in features], np.float32),
        namespaces=names,
    )


def cut(events: Sequence[Event], sizes: Iterable[int]) -> list[Block]:
    """Return the blocks of a stream, of `sizes` events each; the last block has the remaining events."""
    names, blocks, at = Namespaces(), [], 0
    for size in sizes:
        if events[at : at + size]:
            blocks.append(make_block(events[at : at + size], names))
        at += size
    if events[at:]:
        blocks.append(make_block(events[at:], names))
    return blocks


def _words(line: Line) -> str:
    words = [] if line.spans else ["|"]
    for name, features in line.spans:
        words.append("|" + name.decode())
        words += [f"{hash_ - name_hash(name) & 0xFFFFFFFF}:{value!r}" for hash_, value in features]
    return " ".join(words)


def as_text(events: Sequence[Event], *, bandit: bool, multiline: bool) -> str:
    """Return VW text of `events`; hashes are written as numeric names that have them."""
    text = ""
    for event in events:
        for line in event:
            costs = " ".join(
                f"{action}" if cost is None else f"{action}:{cost!r}:{probability!r}"
                for action, cost, probability in line.costs
            )
            simple = "" if line.label is None else f"{line.label!r} {line.weight!r} {line.initial!r}"
            head = "shared" if line.shared else costs if bandit else simple
            text += f"{head} {_words(line)}\n"
        if multiline:
            text += "\n"
    return text
