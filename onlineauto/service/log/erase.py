"""``erase``: removes personal data from a log in place, so that positions in the log stay valid.

A decision loses its context and the features of its actions. Its id, its actions' ids, its probabilities and
its rewards stay, so that the join of the log does not change. Blanks keep the length of the line. What a
model has learnt from the features is not undone.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from onlineauto.errors import InputError
from onlineauto.service.log.segment_log import is_whole, read_record, sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.service.log.segment_log import SegmentLog


def without_features(line: bytes, decision: LogRecord) -> bytes:
    r"""Return the line of a decision without its features, padded to its length.

    >>> head = b'{"Type":"rank","Timestamp":"2026-01-01T00:00:00Z",'
    >>> line = sealed(head + b'"c":{"user":{"tom":1},"_multi":[{"_tag":"a","x":1}]}}')
    >>> bare = without_features(line, read_record(line))
    >>> bare.replace(b"  ", b"").partition(b',"crc"')[0].removeprefix(head)
    b'"c":{"_multi":[{"_tag":"a"}]} '
    >>> len(bare) == len(line)
    True
    """
    context, tags = bytes(decision.context), decision.tags
    bare = msgspec.json.encode({"_multi": [{"_tag": tag} for tag in tags]})
    before, member, after = line.partition(b'"c":' + context)
    if not member or "" in tags:
        raise InputError("its context is not written as a service writes it")
    text = before + b'"c":' + bare + b" " * (len(context) - len(bare)) + after
    return sealed(text[: text.rindex(b',"crc":')] + b"}")


def erase(
    log: SegmentLog,
    event_ids: Collection[str],
    *,
    skipped: Callable[[int, Exception], object] = lambda position, error: None,  # noqa: ARG005
) -> tuple[Counter[str], Counter[str]]:
    """Remove the features of decisions from a log that no process writes to.

    Return the number of records of each id that lose features, and of those that had none already.

    A damaged record with one of the ids is overwritten with blanks, since no reader can use it.
    """
    wanted = {msgspec.json.encode(event_id): event_id for event_id in event_ids}
    counts, already = Counter[str](), Counter[str]()
    erased: dict[int, bytes] = {}
    for position, line in log.lines(log.begin):
        named = [event_id for text, event_id in wanted.items() if text in line]
        if not named and is_whole(line):
            continue
        try:
            record = read_record(line)
            if record.kind == "rank" and record.event_id in named:
                bare = without_features(line, record)
                (already if bare == line else counts)[record.event_id] += 1
                erased[position] = bare
        except (InputError, ValueError) as error:
            skipped(position, error)
            if named:
                erased[position] = b" " * (len(line) - 1) + b"\n"
                counts.update(named)
    log.replace(erased)
    return counts, already
