"""``LogParts``: the names by which a learner knows the log of a rank server, and where each begins.

A log that was restored from a backup goes on with other records than those that the learner has by its name.
So a part with a new name begins wherever the learner knows more of a name than the log has, and wherever a
process has started that could not ask. What is before it, the learner has; no record is handed over twice.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from onlineauto.workspace.model_file import replace_file

if TYPE_CHECKING:
    from pathlib import Path

    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.service.loop.upstream import Upstream

__all__ = ["LogParts", "Part"]


class Part(NamedTuple):
    """The name of a part, and the position in the log at which it begins."""

    name: str
    begin: int


class LogParts:
    """Parts of a log by a file that has a line for each: its name, and its beginning unless that is 0.

    Parameters
    ----------
    path : Path
        The file; it is made if it is not there.
    log : SegmentLog
        The log, which was just opened.
    """

    def __init__(self, path: Path, log: SegmentLog) -> None:
        self._path, self._opened_at = path, log.end
        found = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        parts = [Part(words[0], int(words[1]) if words[1:] else 0) for words in found if words]
        self.parts = [each for each in parts if each.begin <= log.end]
        if not self.parts:
            self._begin(log.begin)

    def begin_here(self, shipped: int = 0) -> int:
        """Begin a part where the log ended when it was opened, or where more was handed over; return that."""
        position = max(self._opened_at, shipped)
        self._begin(position)
        return position

    def known(self, upstream: Upstream) -> int:
        """Return the position up to which a learner has the log; it may be behind the end of the log.

        Raises
        ------
        InputError
            The learner is away, or refuses.
        """
        end: int | None = None
        for part in reversed(self.parts):
            taken = upstream.take(part.name, 0, b"")
            if taken:
                return part.begin + taken if end is None else min(part.begin + taken, end)
            end = part.begin
        return self.parts[0].begin

    def part_of(self, position: int) -> tuple[Part, int | None]:
        """Return the part that has a position, and where it ends; None if it is the last one."""
        number = max(index for index, each in enumerate(self.parts) if each.begin <= position)
        following = self.parts[number + 1 : number + 2]
        return self.parts[number], following[0].begin if following else None

    def _begin(self, position: int) -> None:
        """Begin a part; an empty one at the same position is replaced, since its name may be in use."""
        self.parts = [each for each in self.parts if each.begin < position]
        self.parts.append(Part(secrets.token_hex(8), position))
        lines = [f"{each.name} {each.begin}" if each.begin else each.name for each in self.parts]
        replace_file(self._path, ["\n".join(lines).encode()])
