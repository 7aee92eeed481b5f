"""``PlannedRounds``: the parts of a log that several workers learn together, in a file beside the snapshot.

Workers learn a part from a common state, so the model depends on where a part begins and ends. Parts are
planned only while the learner is far behind, which depends on the clock. Each part is therefore written to
the file before it is learnt, and a learner that starts again learns the same parts.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from onlineauto.engine.stream.validity import first_invalid_event
from onlineauto.errors import InputError
from onlineauto.formats.lines.diagnostics import Diagnostics

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from onlineauto.engine.event.outcomes import Outcomes
    from onlineauto.features.block import Block
    from onlineauto.service.log.segment_log import SegmentLog
    from onlineauto.workspace.workspace import Workspace

LEAST_BYTES: Final = 4 << 20
"""Number of bytes of the log from which on workers learn what is not learnt yet."""
MOST_BYTES: Final = 16 << 20
"""Maximum number of bytes of the log in a part."""


class Learners(Protocol):
    """Workers that learn blocks together."""

    alone: int  # Number of decisions that are learnt before the first part.
    plans: bool  # False to learn only the parts that are planned already.

    def learn(
        self, workspace: Workspace, blocks: Sequence[Block], done: int
    ) -> Iterator[tuple[Block, Outcomes]]:
        """Learn blocks with a workspace that has learnt `done` events; yield all events with outcomes."""

    def close(self) -> None:
        """End the workers."""


class PlannedPart(NamedTuple):
    """The records of the log from the current position up to the first one at or behind `end`."""

    end: int
    together: bool


ANY: Final = PlannedPart(1 << 63, False)


def planned_parts(path: Path, log_end: int) -> tuple[list[tuple[int, int]], int]:
    """Return the parts in a file, and its size; cut off those that end behind the log, as in a copy."""
    content = path.read_bytes() if path.exists() else b""
    parts: list[tuple[int, int]] = []
    size = 0
    for line in content[: content.rfind(b"\n") + 1].splitlines(keepends=True):
        try:
            begin, end = map(int, line.split())
            if not (parts[-1][1] if parts else 0) <= begin < end:
                raise ValueError
        except ValueError:
            raise InputError(
                f"{path}:{len(parts) + 1}: a line has the begin and the end of a part of the log. "
                "Restore the file from a backup; or remove it, and what the snapshot does not have is learnt "
                "in other parts"
            ) from None
        if end > log_end:
            break
        parts.append((begin, end))
        size += len(line)
    if size < len(content):  # also a part that was not written completely, and so was not learnt
        with path.open("r+b") as file:
            file.truncate(size)
            os.fsync(file.fileno())
    return parts, size


class PlannedRounds:
    """The planned parts of a log, in a file that is created with the first part."""

    def __init__(self, path: Path, log: SegmentLog, learners: Learners) -> None:
        self.learners, self._path, self._log = learners, path, log
        with log.alone():
            parts, self._size = planned_parts(path, log.end)
        self._begins = [begin for begin, _ in parts]
        self._ends = [end for _, end in parts]

    def part_at(self, position: int, learnt: int) -> PlannedPart:
        """Return the part that begins or continues at a position; plan one if the learner is far behind."""
        number = bisect_right(self._begins, position)
        if number and position < self._ends[number - 1]:
            return PlannedPart(self._ends[number - 1], True)
        if number < len(self._begins):
            return PlannedPart(self._begins[number], False)
        missing = self._log.durable - position
        if not self.learners.plans or learnt < self.learners.alone or missing < LEAST_BYTES:
            return ANY
        end = position + min(missing, MOST_BYTES)
        self._write(position, end)
        return PlannedPart(end, True)

    def _write(self, begin: int, end: int) -> None:
        line = b"%d %d\n" % (begin, end)
        with self._log.alone(), self._path.open("ab") as file:
            file.truncate(self._size)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self._size += len(line)
        self._begins.append(begin)
        self._ends.append(end)


def valid_blocks(workspace: Workspace, lines: bytes) -> Iterator[Block]:
    """Yield the events of lines as a workspace reads them, without those that cannot be learnt."""
    for block in workspace.read(lines, diagnostics=Diagnostics()):
        rest = block
        while len(rest):
            valid, _ = first_invalid_event(rest, workspace.kind)
            if valid:
                yield rest.head(valid)
            rest = rest.tail(min(valid + 1, len(rest)))
