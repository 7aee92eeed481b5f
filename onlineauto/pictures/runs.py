"""``course_of``: the average loss of a run over its events, from its printed progress table."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROW: Final = re.compile(
    r"^(?P<average>-?[\d.]+(?:e-?\d+)?)\s+(?P<since>\S+)\s+(?P<events>\d+)\s+(?P<weight>[\d.]+)\s"
)
_END: Final = re.compile(r"^average loss = (?P<average>-?[\d.]+(?:e-?\d+)?)$")
_COUNT: Final = re.compile(r"^number of examples = (?P<events>\d+)$")
_TITLE: Final = b"average  since "


class Course(NamedTuple):
    """The average loss of a run over its events."""

    name: str  # Name of the run.
    events: list[int]  # Numbers of completed events.
    loss: list[float]  # The average loss of all events so far.


def course_of(path: str | os.PathLike[str]) -> Course:
    """Return the course of a run from a file with the output of onlineauto or of Vowpal Wabbit.

    Raises
    ------
    InputError
        If the file has no row of a progress table.
    OSError
        If the file cannot be read.
    """
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        course = _loss_curve(file, Path(path).stem)
    if not course.events:
        raise InputError(f"{os.fspath(path)} has no progress table, which a run prints on standard error")
    return course


def has_table(path: str | os.PathLike[str]) -> bool:
    """Return whether a file has a progress table near its beginning."""
    with Path(path).open("rb") as file:
        return _TITLE in file.read(1 << 16)


def _loss_curve(lines: Iterable[str], name: str) -> Course:
    course, number = Course(name, [], []), 0
    for line in lines:
        if row := _ROW.match(line):
            course.events.append(int(row["events"]))
            course.loss.append(float(row["average"]))
        elif count := _COUNT.match(line):
            number = int(count["events"])
        elif (end := _END.match(line)) and course.events and number > course.events[-1]:
            course.events.append(number)
            course.loss.append(float(end["average"]))
    return course
