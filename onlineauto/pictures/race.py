"""``race``: the search of a run as a race of live configs, from its journal."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.automl.config import ConfigKind, namespace_text
from onlineauto.pictures.picture import Picture
from onlineauto.pictures.story import story_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from matplotlib.axes import Axes

    from onlineauto.automl.config import Interaction
    from onlineauto.pictures.picture import Look
    from onlineauto.pictures.story import Interval, Journal, Story, Stretch

_WIDTH: Final = 11.0
_HALF: Final = 0.34
"""Half of the height of a bar; the distance between lanes is 1."""
_LETTER: Final = 0.0068
"""Width of a letter of a label, as a fraction of the width of the plot."""
_PRECISE: Final = 0.5
"""An interval is drawn if it rests on at least this fraction of the events of the interval before it."""
_FEW: Final = 8
"""The axis fits the intervals that rest on at least 1/8 of the maximum number of events."""
_OUTCOMES: Final = (
    ("champion", "champion"),
    ("rising", "became the champion"),
    ("waiting", "gave way, or still runs"),
    ("worse", "proved worse"),
)


def race(journal: Journal, *, title: str = "", dark: bool = False) -> Picture:
    """Draw the live configs of a search over the events, their leases, the swaps, and the champion's reward.

    The reward has the bounds known to the search at each decision, over the events on which a challenger was
    compared.

    Parameters
    ----------
    journal : Journal
        Path of a journal, or its lines.
    title : str, optional
        By default a sentence with the number of changes of the champion.
    dark : bool
        True for a dark background.

    Raises
    ------
    InputError
        If it is not a journal, or no config was live.
    OSError
        If the file cannot be read.
    """
    story = story_of(journal)
    lanes = max(stretch.lane for stretch in story.stretches) + 1
    row = min(0.42, 12 / lanes)
    known = bool(story.intervals)
    height = 2.0 + row * lanes + 2.1 * known
    picture = Picture(_WIDTH, height, title=title or _title(story), note=_note(journal, story), dark=dark)
    with picture.drawing() as style:
        rows = [row * lanes + 0.9, *([2.1] if known else [])]
        axes = picture.figure.subplots(len(rows), 1, sharex=True, height_ratios=rows, squeeze=False)[:, 0]
        _draw_lanes(axes[0], story, style, lanes=lanes)
        if known:
            _draw_reward(axes[1], story, colour=style.champion, dashes=style.quiet)
            axes[1].set_title("The champion's average reward: an interval at each decision", size=9)
        axes[-1].set_xlabel("events")
        axes[-1].set_xlim(0, max(story.events, 1))
        axes[-1].xaxis.set_major_formatter("{x:,.0f}")
    return picture


def _title(story: Story) -> str:
    many = len(story.swaps)
    times = {1: "once", 2: "twice"}.get(many, f"{many} times")
    changed = f"changed {times}" if many else "never changed"
    return f"The champion {changed} in {story.events:,} events"


def _note(journal: Journal, story: Story) -> str:
    crossed = story.champion_interactions()
    parts = [Path(journal).name] if isinstance(journal, str | os.PathLike) else []
    parts.append(f"the last champion crosses {_interactions_text(crossed, most=6) if crossed else 'nothing'}")
    parts += _settings_text(story.champion.settings)
    return " · ".join(parts)


def _draw_lanes(axes: Axes, story: Story, style: Look, *, lanes: int) -> None:
    total = max(story.events, 1)
    for stretch in story.stretches:
        colour = _colour(stretch, style)
        axes.broken_barh(
            [(stretch.begin, stretch.end - stretch.begin)],
            (stretch.lane - _HALF, 2 * _HALF),
            facecolor=colour,
            edgecolor=style.paper,
            linewidth=0.8,
        )
        if stretch.lane:  # a notch at each extension of a lease
            low, high = stretch.lane + 0.55 * _HALF, stretch.lane + _HALF
            axes.vlines(stretch.leases, low, high, color=style.ink, linewidth=1)
        text = difference(stretch) if stretch.lane else _champion_text(stretch)
        if lanes <= 24 and len(text) * _LETTER < (stretch.end - stretch.begin) / total:
            ink = style.paper if stretch.lane == 0 else style.ink
            axes.text(
                stretch.begin + 0.004 * total, stretch.lane - 0.04, text, size=7.5, va="center", color=ink
            )
    for now, lane in story.swaps:
        axes.vlines(now, 0, lane, color=style.ink, linewidth=1.2, zorder=0.5)  # behind the bars
        axes.plot([now], [_HALF + 0.12], marker="^", color=style.ink, markersize=5)
        axes.axvline(now, color=style.quiet, linewidth=0.7, linestyle=(0, (2, 2)), zorder=0)
    _mark_events(axes, story, style)
    axes.set_ylim(lanes - 0.5, -0.9 if story.late else -0.5)
    axes.set_yticks(*_ticks(lanes))
    axes.grid(visible=False)
    axes.tick_params(length=0)
    axes.spines[["left", "bottom"]].set_visible(False)
    _explain(axes, story, style)


def _colour(stretch: Stretch, style: Look) -> str:
    if stretch.lane == 0:
        return style.champion
    return {"promoted": style.rising, "worse": style.worse}.get(stretch.outcome, style.waiting)


def _mark_events(axes: Axes, story: Story, style: Look) -> None:
    """Draw late namespaces, the start of the ensemble's predictions, and drift above the lanes."""
    for begin, end in _ensemble_spans(story):
        axes.hlines(-_HALF - 0.08, begin, end, color=style.series[2], linewidth=2.5)
    for now, names in story.late:
        axes.plot([now], [-0.62], marker="v", color=style.quiet, markersize=5, clip_on=False)
        if len(story.late) <= 4:
            axes.annotate(
                "+ " + ", ".join(map(namespace_text, names)),
                (now, -0.62),
                xytext=(5, -2.5),
                textcoords="offset points",
                size=7.5,
                color=style.quiet,
            )
    for now in story.drifts:
        axes.axvline(now, color=style.series[1], linewidth=1.2, linestyle=(0, (4, 2)))


def _ensemble_spans(story: Story) -> list[tuple[int, int]]:
    """Return the first and the last event of each period in which the ensemble predicts."""
    ends = [now for now, _ in story.predicted[1:]] + [story.events]
    return [
        (begin, end)
        for (begin, predictor), end in zip(story.predicted, ends, strict=False)
        if predictor == "ensemble"
    ]


def _ticks(lanes: int) -> tuple[list[int], list[str]]:
    """Return the labelled lanes, and their labels."""
    step = 1 if lanes <= 24 else lanes // 12
    ticks = list(range(0, lanes, step))
    return ticks, ["champion" if lane == 0 else f"challenger {lane}" for lane in ticks]


def _explain(axes: Axes, story: Story, style: Look) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colours = {_colour(stretch, style) for stretch in story.stretches}
    handles: list[Any] = [
        Patch(color=getattr(style, name), label=text)
        for name, text in _OUTCOMES
        if getattr(style, name) in colours
    ]
    if any(stretch.leases and stretch.lane for stretch in story.stretches):
        handles.append(
            Line2D([], [], marker="|", linestyle="", color=style.ink, markersize=6, label="lease extended")
        )
    if _ensemble_spans(story):
        handles.append(Line2D([], [], color=style.series[2], linewidth=2.5, label="the ensemble predicts"))
    if story.drifts:
        handles.append(Line2D([], [], color=style.series[1], linestyle=(0, (4, 2)), label="drift"))
    if story.late:
        handles.append(
            Line2D([], [], marker="v", linestyle="", color=style.quiet, markersize=5, label="new namespaces")
        )
    axes.legend(
        handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(handles), borderaxespad=0.2,
        borderpad=0, handlelength=1.2, columnspacing=1.6,
    )  # fmt: skip


def _champion_text(stretch: Stretch) -> str:
    many = len(stretch.config.elements)
    if stretch.config.kind is ConfigKind.EXCLUSION:
        return f"all but {many} interactions" if many else "all interactions"
    return ", ".join(
        [f"{many or 'no'} interaction{'s' * (many != 1)}", *_settings_text(stretch.config.settings)]
    )


def difference(stretch: Stretch) -> str:
    """Return the difference of a config from the champion when it became live, as a short text."""
    config, champion = stretch.config, stretch.champion
    own, of_champion = set(config.elements), set(champion.elements)
    more, less = sorted(own - of_champion), sorted(of_champion - own)
    if config.kind is ConfigKind.EXCLUSION:
        more, less = less, more
    parts = [
        f"{sign}{_interactions_text(changed, most=2)}"
        for sign, changed in (("+ ", more), ("\N{MINUS SIGN} ", less))
        if changed
    ]
    parts += _settings_text(sorted(set(config.settings) - set(champion.settings)))
    names = {name for name, _ in config.settings}
    parts += [f"{name} as given" for name, _ in champion.settings if name not in names]
    return ", ".join(parts) or "as the champion"


def _settings_text(settings: Iterable[tuple[str, float | str]]) -> list[str]:
    return [
        f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in settings
    ]


def _interactions_text(crossed: list[Interaction], *, most: int) -> str:
    """Return interactions by name, or their number if there are more than `most`."""
    if len(crossed) > most:
        return f"{len(crossed)} interactions"
    return ", ".join("\N{MULTIPLICATION SIGN}".join(map(namespace_text, names)) for names in crossed)


def _draw_reward(axes: Axes, story: Story, *, colour: str, dashes: str) -> None:
    """Draw the intervals on the reward of each champion as a band, with dashes at changes of the champion."""
    drawn: list[Interval] = []
    ends = [0, *(now for now, _ in story.swaps), story.events]
    for begin, end in pairwise(ends):
        intervals = list(_precise(interval for interval in story.intervals if begin < interval.events <= end))
        drawn += intervals
        events = [interval.events for interval in intervals]
        low, high = [each.low for each in intervals], [each.high for each in intervals]
        axes.fill_between(events, low, high, color=colour, alpha=0.22, linewidth=0)
        axes.vlines(events, low, high, color=colour, linewidth=1, alpha=0.7)
    for now, _ in story.swaps:
        axes.axvline(now, color=dashes, linewidth=0.8, linestyle=(0, (2, 2)), zorder=0)
    _fit(axes, drawn)
    axes.set_ylabel("reward")


def _fit(axes: Axes, intervals: Iterable[Interval]) -> None:
    """Fit the axis to the intervals with many events; the first intervals are as wide as all rewards."""
    all_intervals = list(intervals)
    most = max((interval.updates for interval in all_intervals), default=0)
    precise = [interval for interval in all_intervals if _FEW * interval.updates >= most]
    if not precise:
        return
    low, high = min(each.low for each in precise), max(each.high for each in precise)
    margin = 0.06 * (high - low) or 1.0
    axes.set_ylim(low - margin, high + margin)


def _precise(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Yield the most precise interval at each time, unless it has far fewer events than the last one."""
    at: dict[int, Interval] = {}
    for each in intervals:
        if each.events not in at or each.updates > at[each.events].updates:
            at[each.events] = each
    many = 0
    for interval in at.values():
        if interval.updates >= _PRECISE * many:
            many = interval.updates
            yield interval
