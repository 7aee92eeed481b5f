"""``named_block``: convert events with names to a Block."""

from __future__ import annotations

from struct import pack
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.records import COST, FEATURE, LINE, SPAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.features.records import Records
    from onlineauto.formats.mappings.name_hashes import NameHashes
    from onlineauto.formats.mappings.named_event import NamedEvent


def named_block(events: Sequence[NamedEvent], names: NameHashes, *, first: int = 0) -> Block:
    """Return a block of events with names; all lines of an event have the event's number."""
    lines: list[Any] = []
    costs: list[Any] = []
    spans: list[Any] = []
    features: list[Any] = []
    tag = b""
    starts = [0]
    n_lines = n_spans = n_features = n_costs = 0
    for number, event in enumerate(events, first + 1):
        for line in event.lines:
            label = UNLABELLED if line.label is None else line.label
            lines += number, n_spans, n_costs, len(tag)
            lines += label, line.weight, line.initial, line.shared, line.slot
            tag += line.tag.encode()
            for action, cost, probability in line.costs:
                costs += (action, UNLABELLED if cost is None else cost, probability)
                n_costs += 1
            for name, named in line.spans:
                namespace, before = names.namespace(name), n_features
                for feature, value in named:
                    if value:
                        features += (names.feature(feature, namespace), value)
                        n_features += 1
                if n_features > before:
                    spans += (before, namespace)
                    n_spans += 1
        n_lines += len(event.lines)
        starts.append(n_lines)
    lines += 0, n_spans, n_costs, len(tag), 0.0, 0.0, 0.0, False, False
    spans += n_features, 0
    return Block(
        event_start=np.array(starts, np.int64),
        lines=_records(LINE, "4q3f2?2x", n_lines + 1, lines),
        costs=_records(COST, "I2f", n_costs, costs),
        spans=_records(SPAN, "qi4x", n_spans + 1, spans),
        features=_records(FEATURE, "If", n_features, features),
        tag=np.frombuffer(tag, np.uint8),
        namespaces=names.namespaces,
        rules=names.rules,
        objects="event",
    )


def _records(dtype: np.dtype[Any], form: str, n: int, values: list[Any]) -> Records:
    """Return `n` records of consecutive values; `form` is the format of the dtype for `struct`.

    For the few records of one event this is several times as fast as NumPy's conversions.
    """
    return np.frombuffer(bytearray(pack(f"={n * form}", *values)), dtype)
