"""``parts``: the parts of the predicted reward or cost of each action."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_ACTIONS: Final = 4
_MOST_PARTS: Final = 10
_MOST_LETTERS: Final = 34


def parts(explanation: Mapping[str, Any], *, title: str = "", dark: bool = False) -> Picture:
    """Draw which features and members moved the predicted reward, or cost, of each action.

    Parameters
    ----------
    explanation : mapping
        A result of `AutoML.explain` or of `onlineauto.interop.explanation.explain`.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Returns
    -------
    Picture
        Bars with the largest parts of the four best actions. The parts of an action add up to its prediction.
    """
    rows = explanation["actions"]
    what = "reward" if "reward" in rows[0] else "cost"
    best = sorted(rows, key=lambda row: row[what], reverse=what == "reward")[:_MOST_ACTIONS]
    bars = [_bars(row) for row in best]
    note = f"Predicted by the {explanation['predicts']}. The bars of an action add up to its {what}."
    height = 1.5 + 0.26 * max(map(len, bars))
    picture = Picture(
        3.6 * len(best) + 0.6, height, title=title or f"Why each action has its {what}", note=note, dark=dark
    )
    with picture.drawing() as look:
        panels = picture.figure.subplots(1, len(best), sharex=True, squeeze=False)[0]
        for panel, row, named in zip(panels, best, bars, strict=True):
            values = [value for _, value in named]
            colours = [look.champion if (value > 0) == (what == "reward") else look.worse for value in values]
            panel.barh(range(len(values)), values, color=colours, height=0.7)
            panel.set_yticks(range(len(values)), [_shorten(name) for name, _ in named])
            panel.set_ylim(len(values) - 0.5, -0.5)
            panel.axvline(0, color=look.quiet, linewidth=0.8)
            panel.grid(visible=False, axis="y")
            panel.tick_params(axis="y", length=0)
            name = row.get("action_id", row["action"])
            panel.set_title(f"{_shorten(str(name))}: {row[what]:.3g}")
    return picture


def _bars(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the level and the largest parts of an action, and the sum of all others."""
    named = sorted((*row["features"].items(), *row["rest"].items()), key=lambda each: -abs(each[1]))
    shown, others = named[:_MOST_PARTS], named[_MOST_PARTS:]
    level = [("what all actions share", row["level"])] if row["level"] else []
    return level + shown + ([(f"{len(others)} others", sum(value for _, value in others))] if others else [])


def _shorten(name: str) -> str:
    """Return a name, with its end replaced by an ellipsis if it is long."""
    return name if len(name) <= _MOST_LETTERS else name[: _MOST_LETTERS - 1] + "…"
