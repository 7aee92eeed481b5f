"""``replayed``: the records of a log with the decisions that each ends; what cannot be applied is skipped.

A record is applied as a whole or not at all. One that cannot be applied stops nothing behind it: whoever
reads the log learns where the record is and why, and goes on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.service.log.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.join.join import Ended, Join
    from onlineauto.service.log.record import Record
    from onlineauto.service.log.segment_log import SegmentLog


class Skipped(NamedTuple):
    """A record that could not be applied: its position, its segment, the byte in it, and the reason."""

    position: int
    segment: str
    offset: int
    reason: str

    def __str__(self) -> str:
        """Return a sentence for a log or a status."""
        return f"the record at byte {self.offset} of {self.segment} was skipped: {self.reason}"


class Replayed(NamedTuple):
    """A record of the log: its line, what it says, who decided then, and the decisions that it ends.

    If it could not be applied, `skipped` says why; `record` is None then, and `ended` is empty.
    """

    position: int
    line: bytes
    record: Record | None
    mode: str
    ended: list[Ended]
    skipped: Skipped | None


def replayed(join: Join, log: SegmentLog, position: int) -> Iterator[Replayed]:
    """Let a join take the records of a log from a position on, and yield each of them."""
    for at, line in log.lines(position):
        mode = join.settings.mode
        try:
            record = read_record(line)
            ended = join.take(record, at, len(line))
        except Exception as error:  # whatever is wrong with a record, those behind it are applied
            yield Replayed(at, line, None, mode, [], skipped_at(log, at, error))
        else:
            yield Replayed(at, line, record, mode, ended, None)


def skipped_at(log: SegmentLog, position: int, error: Exception | str) -> Skipped:
    """Return what is known of a record that could not be applied."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return Skipped(position, *log.place_of(position), reason)
