"""``LogParts``: the names under which a learner knows the log of a rank server, and where each part begins.

A log that was restored from a backup continues with records that differ from those that the learner has under
its name. So when a process opens the log, it begins a part with a new name at the end, if the learner has
more records under the old name than the log, or is away. No record is handed over twice.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.errors import InputError
from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.service.loop.upstream import Upstream


class LogPart(NamedTuple):
    """The name of a part, and the position in the log at which it begins."""

    name: str
    begin: int


class LogParts:
    """The parts of a log that was just opened, in a file with a line for each: its name, and its begin."""

    def __init__(self, path: Path, log: SegmentLog) -> None:
        self._path, self._opened_at = path, log.end
        try:
            lines = path.read_text("ascii").splitlines() if path.exists() else []
            parts = [
                LogPart(name, int(begin or 0)) for name, _, begin in (line.partition(" ") for line in lines)
            ]
        except ValueError:
            raise InputError(
                f"{path} is damaged: restore it from a backup, or begin with an empty folder"
            ) from None
        self.parts = [each for each in parts if each.name and each.begin <= log.end]
        if not self.parts:
            self._begin(log.begin)

    def begin_here(self, shipped: int = 0) -> int:
        """Begin a part at the end of the log when it was opened, or behind `shipped`; return its position."""
        position = max(self._opened_at, shipped)
        self._begin(position)
        return position

    def known(self, upstream: Upstream) -> int:
        """Return the position up to which a learner has the log; it may be behind the end of the log."""
        end: int | None = None
        for part in reversed(self.parts):
            taken = upstream.take(part.name, 0, b"")
            if taken:
                return part.begin + taken if end is None else min(part.begin + taken, end)
            end = part.begin
        return self.parts[0].begin

    def part_of(self, position: int) -> tuple[LogPart, int | None]:
        """Return the part that contains a position, and its end; None if it is the last part."""
        number = max(index for index, each in enumerate(self.parts) if each.begin <= position)
        following = self.parts[number + 1 : number + 2]
        return self.parts[number], following[0].begin if following else None

    def _begin(self, position: int) -> None:
        """Begin a part; an empty part at the same position is replaced, since its name may be in use."""
        parts = [each for each in self.parts if each.begin < position]
        parts.append(LogPart(secrets.token_hex(8), position))
        lines = [f"{each.name} {each.begin}" if each.begin else each.name for each in parts]
        try:
            replace_file(self._path, ["\n".join(lines).encode()])
        except OSError as error:
            raise InputError(f"cannot write {self._path}: {error.strerror}") from None
        self.parts = parts
