"""``join_log_lines``: the labelled lines of a log's decisions, in the order in which they are learnt."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from onlineauto.errors import OnlineautoError
from onlineauto.formats.decisions.dsjson import LogRecord, labelled_line
from onlineauto.service.join.join import Join, replay
from onlineauto.service.join.settings import JoinSettings, read_settings
from onlineauto.service.learning.experiment import CONTROL
from onlineauto.service.log.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.log.segment_log import SegmentLog


def is_explored(line: bytes) -> bool:
    """Return whether a model made a decision, and not a baseline, which explores no other actions.

    >>> is_explored(b'{"mode":"online","c":{}}'), is_explored(b'{"mode":"apprentice","c":{"mode":"online"}}')
    (True, False)
    """
    return line.find(b'"mode":"online"', 0, line.find(b',"c":')) >= 0


def label_line(line: bytes, decision: LogRecord, reward: float) -> bytes:
    """Return the line of a decision, with the label that its reward gives."""
    return labelled_line(line, 0.0 - reward, ranked=decision.ranked, probabilities=decision.probabilities)


def _first_settings(log: SegmentLog) -> JoinSettings:
    """Return the first settings of a log, whose beginning may have been removed."""
    for _, line in log.lines(log.begin):
        if line.startswith(b'{"Type":"settings"'):
            with suppress(OnlineautoError):
                return read_settings(read_record(line).settings)
    return JoinSettings()


def join_log_lines(log: SegmentLog, *, explored: bool = False) -> Iterator[bytes]:
    """Yield the lines of all decisions of a log that have ended, as ``onlineauto -d - --dsjson`` reads them.

    With `explored`, decisions of a baseline are left out, because they have no information on other actions.
    Records that the learner skips are left out, too, and so are decisions of a control arm.
    """
    join = Join(_first_settings(log))
    for entry in replay(join, log, log.begin):
        for ended in entry.ended:
            line = log.line_at(ended.position, ended.size)
            if entry.mode != "logging-only" and (is_explored(line) or not explored):
                with suppress(OnlineautoError, LookupError, ValueError, TypeError):  # the learner skips it
                    record = read_record(line)
                    if record.arm != CONTROL:
                        yield label_line(line, record, ended.reward)
