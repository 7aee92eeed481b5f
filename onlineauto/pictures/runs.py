"""``rewards``: the average reward of runs, side by side, from the progress tables that they printed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from onlineauto.errors import InputError
from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

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


def rewards(
    courses: Sequence[Course],
    *,
    changes: Mapping[str, Sequence[int]] | None = None,
    losses: bool = False,
    title: str = "",
    dark: bool = False,
) -> Picture:
    """Draw the average reward of runs over their events, each predicted before it was learnt.

    Parameters
    ----------
    courses : sequence of Course
        The runs, each with its average loss. The reward is the negated loss.
    changes : mapping of str to sequence of int, optional
        Events at which the champion changed, by name of the run.
    losses : bool
        True to draw the loss itself, for regression.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Examples
    --------
    >>> from onlineauto.pictures.runs import Course
    >>> runs = [Course("one", [1, 2, 4], [0.0, -0.5, -0.6]), Course("two", [1, 2, 4], [0.0, -0.1, -0.2])]
    >>> rewards(runs).figure.axes[0].get_ylabel()
    'average reward'
    """
    quantity = "loss" if losses else "reward"
    note = "of all events so far, each predicted before it was learnt"
    if changes and any(changes.values()):
        note += " · marks: the champion changed"
    picture = Picture(9, 4.6, title=title or f"Average {quantity}", note=note, dark=dark)
    with picture.drawing() as look:
        axes = picture.figure.subplots()
        ends: list[tuple[float, str, str]] = []
        for at, run in enumerate(courses):
            colour = look.series[at % len(look.series)]
            reached = run.loss if losses else [-loss for loss in run.loss]
            axes.plot(run.events, reached, color=colour, label=run.name)
            ends.append((reached[-1], f"{run.name}  {reached[-1]:.4g}", colour))
            for change in (changes or {}).get(run.name, ()):
                height = float(np.interp(change, run.events, reached))
                axes.plot([change], [height], "o", color=colour, markeredgecolor=look.paper, markersize=7)
        last = max(run.events[-1] for run in courses)
        axes.set_xscale("log" if last > 1000 else "linear")
        axes.set_xlim(10 if last > 1000 else 0, last)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.xaxis.set_minor_formatter("")
        axes.set_xlabel("events")
        axes.set_ylabel(f"average {quantity}")
        _name_ends(axes, ends)
    return picture


def _name_ends(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write the name of each curve at its end, moved apart where ends are close."""
    low, high = axes.get_ylim()
    step = 0.055 * (high - low)
    at = float("-inf")
    for value, text, colour in sorted(ends):
        at = max(value, at + step)
        axes.annotate(
            text, (1, at), xycoords=("axes fraction", "data"), xytext=(6, 0), textcoords="offset points",
            va="center", color=colour, size=8.5, annotation_clip=False,
        )  # fmt: skip
