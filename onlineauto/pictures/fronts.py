"""``front_picture``: the trials of a study with several objectives, and those that no other one dominates."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.pictures.picture import Picture
from onlineauto.pictures.studies import code_of, draw_importance, draw_lines, importance, is_feasible

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from matplotlib.axes import Axes

    from onlineauto.pictures.look import Look


def front_picture(
    history: Sequence[Mapping[str, Any]],
    space: Mapping[str, Mapping[str, Any]],
    *,
    objectives: Sequence[str],
    front: Collection[int],
    title: str = "A study",
    dark: bool = False,
) -> Picture:
    """Draw a study with several objectives: the first two of them, all configs, and what explains each.

    Parameters
    ----------
    history : sequence of mapping
        The result of `Study.history`.
    space : mapping
        The result of `Space.described`.
    objectives : sequence of str
        The names of the objectives.
    front : collection of int
        The numbers of `Study.best_trials`.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Raises
    ------
    InputError
        If no trial has values.
    """
    keys = [f"value_{name}" for name in objectives]
    told = (row for row in history if row["told"])
    rows = [row for row in told if all(math.isfinite(row.get(key, math.nan)) for key in keys)]
    if not rows:
        raise InputError("the study has nothing to draw: no trial has a value")
    infeasible = sum(not is_feasible(row) for row in rows)
    note = f"{len(rows)} trials · {len(front)} are dominated by no other"
    note += f" · {infeasible} violate a constraint" if infeasible else ""
    picture = Picture(11, 8, title=title, note=note, dark=dark)
    with picture.drawing() as style:
        axes = picture.figure.subplots(2, 2).ravel()
        _draw_front(axes[0], rows, keys, front, style)
        lines = [_line(row, space, row["trial"] in front, style) for row in rows]
        draw_lines(axes[1], sorted(lines, key=lambda line: line[2]), space, style)
        axes[1].set_title("configs, in colour those of the front")
        for at, key in zip((2, 3), keys, strict=False):
            shares = importance([{**row, "value": row[key]} for row in rows], space)
            draw_importance(axes[at], shares, style)
            axes[at].set_title(f"what explains objective {objectives[at - 2]}")
    return picture


def _draw_front(
    axes: Axes, rows: Sequence[Mapping[str, Any]], keys: Sequence[str], front: Collection[int], style: Look
) -> None:
    """Draw the first two objectives of all trials; with two objectives, a line along the front."""
    best = sorted((row for row in rows if row["trial"] in front), key=lambda row: row[keys[0]])
    for each, colour, marker in (
        ([row for row in rows if not is_feasible(row)], style.worse, "x"),
        ([row for row in rows if is_feasible(row) and row["trial"] not in front], style.waiting, "o"),
        (best, style.champion, "o"),
    ):
        first, second = ([row[key] for row in each] for key in keys[:2])
        axes.scatter(first, second, s=14, color=colour, marker=marker, linewidths=0.8)
    if len(keys) == 2:
        along = ([row[key] for row in best] for key in keys)
        axes.plot(*along, color=style.champion, linewidth=1)
    axes.set_title("values of trials" + (", the first two objectives" if len(keys) > 2 else ""))
    axes.set_xlabel(keys[0].removeprefix("value_"))
    axes.set_ylabel(keys[1].removeprefix("value_"))


def _line(
    row: Mapping[str, Any], space: Mapping[str, Mapping[str, Any]], is_best: bool, style: Look
) -> tuple[list[tuple[float, float]], str, float]:
    """Return the line of a config over all parameters, its colour and its width."""
    places = [
        (float(at), code_of(declaration, row[f"config_{name}"]))
        for at, (name, declaration) in enumerate(space.items())
        if f"config_{name}" in row
    ]
    return places, style.champion if is_best else style.waiting, 1.4 if is_best else 0.6
