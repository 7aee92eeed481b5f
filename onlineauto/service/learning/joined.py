"""``joined_lines``: the lines that a log teaches, with their labels, in the order in which they count."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from onlineauto.errors import OnlineautoError
from onlineauto.service.join.join import Join
from onlineauto.service.join.replay import replayed
from onlineauto.service.join.settings import JoinSettings, read_settings
from onlineauto.service.learning.labels import is_explored, labelled
from onlineauto.service.log.record import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlineauto.service.log.segment_log import SegmentLog


def _first_settings(log: SegmentLog) -> JoinSettings:
    """Return the first settings of a log; its beginning may have been removed."""
    for _, line in log.lines(log.begin):
        if line.startswith(b'{"Type":"settings"'):
            with suppress(OnlineautoError):
                return read_settings(read_record(line).settings)
    return JoinSettings()


def joined_lines(log: SegmentLog, *, explored: bool = False) -> Iterator[bytes]:
    """Yield the lines of all decisions of a log that have ended, as ``onlineauto -d - --dsjson`` learns them.

    With `explored`, those are left out of which a baseline decided: they say nothing of other actions.
    What cannot be applied or read is left out, as it is by the learner.
    """
    join = Join(_first_settings(log))
    for each in replayed(join, log, log.begin):
        for ended in each.ended:
            line = log.line_at(ended.position, ended.size)
            if each.mode != "logging-only" and (is_explored(line) or not explored):
                with suppress(OnlineautoError, LookupError, ValueError, TypeError):  # as the learner skips it
                    yield labelled(line, read_record(line), ended.reward)
