"""``joined_lines``: the lines that a log teaches, with their labels, in the order in which they count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from onlineauto.service.join.join import Join, JoinSettings
from onlineauto.service.learning.labels import is_explored, labelled
from onlineauto.service.log.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.log.segment_log import SegmentLog

__all__ = ["joined_lines"]


def _first_settings(log: SegmentLog) -> JoinSettings:
    """Return the first settings of a log; its beginning may have been removed."""
    for _, line in log.lines(log.begin):
        if line.startswith(b'{"Type":"settings"'):
            return msgspec.convert(read_record(line).settings, JoinSettings)
    return JoinSettings()


def joined_lines(log: SegmentLog, *, explored: bool = False) -> Iterator[bytes]:
    """Yield the lines of all decisions of a log that have ended, as ``onlineauto -d - --dsjson`` learns them.

    With `explored`, those are left out of which a baseline decided: they say nothing of other actions.

    Raises
    ------
    InputError
        The log is damaged.
    """
    join = Join(_first_settings(log))
    for position, line in log.lines(log.begin):
        record = read_record(line, where=f"{log.folder}, position {position}")
        before = join.settings.mode
        for ended in join.take(record, position, len(line)):
            decision = log.line_at(ended.position, ended.size)
            if before != "logging-only" and (is_explored(decision) or not explored):
                yield labelled(decision, read_record(decision), ended.reward)
