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
    """Draw which features and members moved the predicted reward or cost of each action, or a prediction.

    Parameters
    ----------
    explanation : mapping
        A result of `explain` of `AutoML`, `AutoMLRegressor` or `AutoMLClassifier`, or of
        `onlineauto.interop.explanation.explain`.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Returns
    -------
    Picture
        Bars with the largest parts of the four best actions or labels. They add up to the prediction.
    """
    rows = explanation.get("actions") or explanation["predictions"]
    what = next(name for name in ("reward", "cost", "probability", "prediction") if name in rows[0])
    best = sorted(rows, key=lambda row: row[what], reverse=what != "cost")[:_MOST_ACTIONS]
    bars = [_bars(row) for row in best]
    note = f"Predicted by the {explanation['predicts']}. The bars of an action add up to its {what}."
    heading = f"Why each action has its {what}"
    if "actions" not in explanation:
        note, heading = f"The bars add up to the {what}.", f"What the {what} is made of"
    height = 1.5 + 0.26 * max(map(len, bars))
    picture = Picture(
        3.6 * len(best) + 0.6,
        height,
        title=title or heading,
        note=note,
        dark=dark,
    )
    with picture.drawing() as look:
        panels = picture.figure.subplots(1, len(best), sharex=True, squeeze=False)[0]
        for panel, row, named in zip(panels, best, bars, strict=True):
            values = [value for _, value in named]
            colours = [look.champion if (value > 0) == (what != "cost") else look.worse for value in values]
            panel.barh(range(len(values)), values, color=colours, height=0.7)
            panel.set_yticks(range(len(values)), [shorten(name) for name, _ in named])
            panel.set_ylim(len(values) - 0.5, -0.5)
            panel.axvline(0, color=look.quiet, linewidth=0.8)
            panel.grid(visible=False, axis="y")
            panel.tick_params(axis="y", length=0)
            name = str(row.get("action_id", row.get("action", row.get("label", what))))
            panel.set_title(f"{shorten(name)}: {row[what]:.4g}")
    return picture


def _bars(row: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the level and the largest parts of an action, and the sum of all others."""
    named = sorted((*row["features"].items(), *row.get("rest", {}).items()), key=lambda each: -abs(each[1]))
    shown, others = named[:_MOST_PARTS], named[_MOST_PARTS:]
    level = [("what all actions share", row["level"])] if row.get("level") else []
    level += [("what all rows share", row["base"])] if row.get("base") else []
    return level + shown + ([(f"{len(others)} others", sum(value for _, value in others))] if others else [])


def shorten(name: str, most: int = _MOST_LETTERS) -> str:
    """Return a name, with its end replaced by an ellipsis if it is long."""
    return name if len(name) <= most else name[: most - 1] + "…"
