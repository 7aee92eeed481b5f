"""``replay``: the records of a log with the decisions that each ends; invalid records are skipped.

A record is applied as a whole or not at all. A record that cannot be applied does not stop those behind it:
the reader receives its position and the reason, and continues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.service.log.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.formats.decisions.dsjson import LogRecord
    from onlineauto.service.join.join import EndedDecision, Join
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
    """A record of the log: its line, its content, the mode at the time, and the decisions that it ends.

    If it could not be applied, `skipped` has the reason, `record` is None, and `ended` is empty.
    """

    position: int
    line: bytes
    record: LogRecord | None
    mode: str
    ended: list[EndedDecision]
    skipped: Skipped | None


def replay(join: Join, log: SegmentLog, position: int) -> Iterator[Replayed]:
    """Let a join take the records of a log from a position on, and yield each of them."""
    for at, line in log.lines(position):
        mode = join.settings.mode
        try:
            record = read_record(line)
            ended = join.take(record, at, len(line))
        except Exception as error:  # a record may be damaged in any way; those behind it must be applied
            yield Replayed(at, line, None, mode, [], skipped_at(log, at, error))
        else:
            yield Replayed(at, line, record, mode, ended, None)


def skipped_at(log: SegmentLog, position: int, error: Exception | str) -> Skipped:
    """Return the description of a record that could not be applied."""
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    return Skipped(position, *log.place_of(position), reason)
