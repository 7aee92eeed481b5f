"""``values``: estimated costs of policies with their intervals, and the narrowing of the intervals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, Protocol

from onlineauto.pictures.picture import Picture, name_rows

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Mapping, Sequence

_MOST_LETTERS: Final = 44
Point = tuple[int, float, float]


class _Estimate(Protocol):
    """An estimate and its interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def values(
    estimates: Mapping[str, _Estimate],
    growth: Mapping[str, Sequence[Point]],
    *,
    alpha: float = 0.05,
    title: str = "What each policy would have cost",
    note: str | None = None,
    unit: str = "cost",
    worse: Container[str] = (),
    dark: bool = False,
) -> Picture:
    """Draw the estimated cost of each policy with its interval, and the narrowing of the intervals.

    Parameters
    ----------
    estimates : mapping of str to Bounded
        The final estimate of each policy; an infinite interval is not drawn.
    growth : mapping of str to sequence of (int, float, float)
        For each policy, number of events, and lowest and highest cost after them.
    alpha : float
        Probability that an interval is ever wrong.
    title : str
        Title of the picture.
    note, unit : str
        A sentence below the title; what is estimated: ``"cost"`` or ``"reward"``.
    worse : container of str
        Policies whose marks are hollow.
    dark : bool
        True for a dark background.
    """
    share = f"{100 * (1 - alpha):g} %"
    note = note or (
        f"Doubly robust, with {share} confidence sequences, which hold after every event. Lower is better."
    )
    height = max(3.6, 1.9 + 0.42 * len(estimates))
    picture = Picture(11, height, title=title, note=note, dark=dark)
    with picture.drawing() as look:
        ends, course = picture.figure.subplots(1, 2, width_ratios=(5, 6))
        for row, (policy, each) in enumerate(estimates.items()):
            colour = look.series[row % len(look.series)]
            if math.isfinite(each.low) and math.isfinite(each.high):
                ends.hlines(row, each.low, each.high, color=colour, linewidth=6, alpha=0.35)
                ends.vlines([each.low, each.high], row - 0.16, row + 0.16, color=colour, linewidth=1.2)
            inside = look.paper if policy in worse else colour
            ends.plot([each.value], [row], "o", color=colour, markersize=6, markerfacecolor=inside)
            known = list(_after_first_narrowing(growth.get(policy, ())))
            if known:
                events, low, high = zip(*known, strict=True)
                course.fill_between(events, low, high, color=colour, alpha=0.16, linewidth=0)
                course.plot(events, low, color=colour, linewidth=0.9)
                course.plot(events, high, color=colour, linewidth=0.9)
        name_rows(ends, [_shorten(policy) for policy in estimates])
        for label in ends.get_yticklabels():
            label.set_color(look.ink)
        ends.spines["left"].set_visible(False)
        ends.set_title("At the end")
        ends.set_xlabel(f"average {unit}")
        course.set_title("As events came in")
        course.xaxis.set_major_formatter("{x:,.0f}")
        course.set_xlabel("labelled events")
    return picture


def _after_first_narrowing(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points from the last one at which the interval was still as wide as all costs."""
    finite = [point for point in points if all(map(math.isfinite, point))]
    widest = max((high - low for _, low, high in finite), default=0.0)
    at = next((k for k, (_, low, high) in enumerate(finite) if high - low < widest), len(finite))
    return iter(finite[max(at - 1, 0) :])


def _shorten(policy: str) -> str:
    """Return the name of a policy, wrapped or truncated to two lines."""
    if len(policy) <= _MOST_LETTERS // 2:
        return policy
    cut = policy.rfind(" -", 0, _MOST_LETTERS // 2 + 6)
    if cut <= 0:
        return policy if len(policy) <= _MOST_LETTERS else "…" + policy[1 - _MOST_LETTERS :]
    rest = policy[cut + 1 :]
    return policy[:cut] + "\n" + (rest if len(rest) <= _MOST_LETTERS else rest[: _MOST_LETTERS - 1] + "…")
