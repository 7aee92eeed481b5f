"""``completion_times``: how long jobs of a cluster take under each policy, beside one of them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Protocol

from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from onlineauto.pictures.look import Look


class Compared(Protocol):
    """A policy beside another one."""

    @property
    def name(self) -> str:
        """Of the policy."""

    @property
    def ratio(self) -> float:
        """Mean completion time divided by the other policy's."""

    @property
    def low(self) -> float:
        """The lower end of its interval."""

    @property
    def high(self) -> float:
        """The upper end of its interval."""

    @property
    def mean(self) -> float:
        """Slots that a job took on average."""

    @property
    def late(self) -> float:
        """Slots that 5 % of jobs exceeded."""


def completion_times(
    rows: Sequence[Compared], *, by: str, note: str = "", title: str = "", dark: bool = False
) -> Picture:
    """Draw completion times of policies: their ratios to one of them with intervals, and the times.

    Parameters
    ----------
    rows : sequence of Compared
        A row for each policy, which `onlineauto.cluster.simulator.compare` returns.
    by : str
        Name of the policy that the others are compared with.
    note : str
        A sentence below the title.
    title : str
        Heads the picture; by default it says what is drawn.
    dark : bool
        True for a dark background.
    """
    height = max(3.4, 2.0 + 0.42 * len(rows))
    heading = title or f"Completion times of jobs, beside {by}"
    picture = Picture(11, height, title=heading, note=note, dark=dark)
    with picture.drawing() as look:
        ratios, times = picture.figure.subplots(1, 2, width_ratios=(6, 5))
        _draw_ratios(ratios, rows, by, look)
        _draw_times(times, rows, look)
    return picture


def _draw_ratios(axes: Axes, rows: Sequence[Compared], by: str, look: Look) -> None:
    axes.axvline(1, color=look.quiet, linewidth=1, linestyle=(0, (2, 2)))
    for at, row in enumerate(rows):
        proved = row.high < 1
        colour = look.champion if proved else look.quiet if row.name == by else look.series[1]
        if row.name != by and math.isfinite(row.low) and math.isfinite(row.high):
            axes.hlines(at, row.low, row.high, color=colour, linewidth=6, alpha=0.35)
        axes.plot([row.ratio], [at], "o", color=colour, markersize=6)
        axes.annotate(
            f"{row.ratio:.3f}",
            (row.ratio, at),
            xytext=(0, 7),
            textcoords="offset points",
            ha="center",
            size=8,
        )
    _name_rows(axes, rows, look)
    axes.set_xlabel("less is faster")
    axes.set_title(f"mean completion time / that of {by}, with 95 % intervals")


def _draw_times(axes: Axes, rows: Sequence[Compared], look: Look) -> None:
    for at, row in enumerate(rows):
        axes.barh(
            at, row.late, height=0.55, color=look.waiting, label="95 % are done by" if at == 0 else None
        )
        axes.barh(at, row.mean, height=0.3, color=look.champion, label="mean" if at == 0 else None)
    _name_rows(axes, rows, look)
    axes.set_xlabel("slots")
    axes.set_title("from the arrival of a job to its end")
    axes.legend(loc="upper right")
    axes.set_xlim(0, 1.6 * max(row.late for row in rows))


def _name_rows(axes: Axes, rows: Sequence[Compared], look: Look) -> None:
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    for label in axes.get_yticklabels():
        label.set_color(look.ink)
    axes.set_ylim(len(rows) - 0.5, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
