"""``draw_reward``: the reward of a search's champions as bands, of one run or of several side by side."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from onlineauto.pictures.picture import Picture
from onlineauto.pictures.story import story_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from matplotlib.axes import Axes

    from onlineauto.pictures.story import Interval, Journal, Story

_NARROW: Final = 0.5
"""An interval is drawn if it rests on this part of the events of the one before, or more."""
_FEW: Final = 8
"""The axis fits the intervals that rest on no fewer events than this part of the most."""


def reward_bands(
    journals: Mapping[str, Journal], *, title: str = "Reward of the champions", dark: bool = False
) -> Picture:
    """Draw the reward of the champions of several searches side by side, from their journals.

    Parameters
    ----------
    journals : mapping of str to Journal
        By name of the run: the path of its journal, or its lines.
    title : str
        Heads the picture.
    dark : bool
        True for a dark background.

    Raises
    ------
    InputError
        If one is not a journal, or nothing happened in it.
    OSError
        If a file cannot be read.
    """
    stories = {name: story_of(journal) for name, journal in journals.items()}
    note = "average reward as the search knew it: an interval at each decision · dashes: the champion changed"
    picture = Picture(9, 4.6, title=title, note=note, dark=dark)
    with picture.drawing() as look:
        from matplotlib.patches import Patch

        axes = picture.figure.subplots()
        colours = [look.series[at % len(look.series)] for at in range(len(stories))]
        for story, colour in zip(stories.values(), colours, strict=True):
            draw_reward(axes, story, colour=colour, dashes=colour)
        _fit(axes, [each for story in stories.values() for each in story.intervals])
        axes.set_xlim(0, max(story.events for story in stories.values()))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set_xlabel("events")
        keys = [Patch(color=colour, label=name) for name, colour in zip(stories, colours, strict=True)]
        picture.figure.legend(handles=keys, loc="outside lower left", ncols=min(len(keys), 4))
    return picture


def draw_reward(axes: Axes, story: Story, *, colour: str, dashes: str) -> None:
    """Draw the intervals on the reward of each champion as a band, with dashes where the champion changed."""
    shown: list[Interval] = []
    ends = [0, *(now for now, _ in story.swaps), story.events]
    for begin, end in pairwise(ends):
        kept = list(_narrow(each for each in story.intervals if begin < each.events <= end))
        shown += kept
        events = [each.events for each in kept]
        low, high = [each.low for each in kept], [each.high for each in kept]
        axes.fill_between(events, low, high, color=colour, alpha=0.22, linewidth=0)
        axes.vlines(events, low, high, color=colour, linewidth=1, alpha=0.7)
    for now, _ in story.swaps:
        axes.axvline(now, color=dashes, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    _fit(axes, shown)
    axes.set_ylabel("reward")


def _fit(axes: Axes, intervals: Iterable[Interval]) -> None:
    """Fit the axis to the intervals that rest on many events; the first ones are as wide as all rewards."""
    found = list(intervals)
    most = max((each.updates for each in found), default=0)
    kept = [each for each in found if _FEW * each.updates >= most]
    if not kept:
        return
    low, high = min(each.low for each in kept), max(each.high for each in kept)
    margin = 0.06 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


def _narrow(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Yield the intervals that rest on many events, one for each number of events done."""
    at: dict[int, Interval] = {}
    for each in intervals:
        if each.events not in at or each.updates > at[each.events].updates:
            at[each.events] = each
    many = 0
    for each in at.values():
        if each.updates >= _NARROW * many:
            many = each.updates
            yield each
