"""Pictures of a study: its resources, best values, configs and their importance, and several objectives."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import InputError
from onlineauto.pictures.picture import Picture

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from onlineauto.pictures.picture import Look


_FEW: Final = 12
"""Maximum number of labelled values or words on an axis."""
_WIDE: Final = 10
"""Ratio of the largest to the smallest number above which an axis is logarithmic."""


def study_picture(
    history: Sequence[Mapping[str, Any]],
    space: Mapping[str, Mapping[str, Any]],
    *,
    mode: str = "min",
    title: str = "A study",
    dark: bool = False,
) -> Picture:
    """Draw a study.

    Parameters
    ----------
    history : sequence of mapping
        The result of `Study.history`.
    space : mapping
        The result of `Space.described`.
    mode : str
        ``min`` if lower values are better, ``max`` if higher values are.
    title : str
        Title of the picture.
    dark : bool
        True for a dark background.

    Raises
    ------
    InputError
        If no trial has a value.
    """
    valued = [row for row in history if row["told"] and math.isfinite(row["value"])]
    if not valued:
        raise InputError("the study has nothing to draw: no trial has a value")
    infeasible = len(valued)
    valued = [row for row in valued if is_feasible(row)] or valued
    infeasible -= len(valued)
    sign = -1.0 if mode == "max" else 1.0
    best = min(valued, key=lambda row: (-row["resource"], sign * row["value"]))
    trials = {row["trial"] for row in valued}
    note = f"{len(trials)} trials · the best is {best['value']:.5g}, of trial {best['trial']}"
    note += f" at {best['resource']:,}" if len({row["resource"] for row in valued}) > 1 else ""
    note += f" · {infeasible} values of infeasible trials are not drawn" if infeasible else ""
    picture = Picture(11, 8, title=title, note=note, dark=dark)
    with picture.drawing() as style:
        (resources, so_far), (configs, matters) = picture.figure.subplots(2, 2)
        _draw_reported(resources, valued, best["trial"], style)
        _draw_best(so_far, valued, sign, style)
        reported = [row for row in history if row["trial"] in trials and math.isfinite(row["value"])]
        level, rows = values_at_common_resource(reported)
        _draw_configs(configs, rows, space, sign, style)
        configs.set_title(f"configs of {len(rows)} trials, by their values at {level:,}")
        draw_importance(matters, importance(rows, space), style)
        matters.set_title(f"what explains these values at {level:,}")
    return picture


def _draw_reported(axes: Axes, reported: Sequence[Mapping[str, Any]], best: int, style: Look) -> None:
    """Draw each reported value, and a line from rung to rung for each trial."""
    paths: dict[int, list[tuple[int, int]]] = {}
    for at, row in enumerate(reported, 1):
        paths.setdefault(row["trial"], []).append((at, row["resource"]))
    for trial, path in sorted(paths.items(), key=lambda each: (each[0] == best, len(each[1]))):
        colour = style.champion if trial == best else style.rising if len(path) > 1 else style.waiting
        wide, size = (2.0, 5) if trial == best else (0.8, 3)
        axes.plot(*zip(*path, strict=True), color=colour, linewidth=wide, marker="o", markersize=size)
    if max(row["resource"] for row in reported) >= _WIDE * min(row["resource"] for row in reported):
        axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_minor_formatter("")
    levels = sorted({row["resource"] for row in reported})
    if len(levels) <= _FEW and all(after >= 1.2 * before for before, after in pairwise(levels)):
        axes.set_yticks(levels, [f"{level:,}" for level in levels], minor=False)
        axes.minorticks_off()
    axes.set_title("what trials were given")
    axes.set_xlabel("values in order of arrival")
    axes.set_ylabel("resource")


def _draw_best(axes: Axes, reported: Sequence[Mapping[str, Any]], sign: float, style: Look) -> None:
    """Draw all values, darker with a larger resource, and the incumbent's value as a line."""
    most = max(row["resource"] for row in reported)
    values = [row["value"] for row in reported]
    strength = [0.25 + 0.75 * math.log1p(row["resource"]) / math.log1p(most) for row in reported]
    order = range(1, len(reported) + 1)
    axes.scatter(order, values, s=9, color=style.series[5], alpha=strength, linewidths=0)  # type: ignore[arg-type]
    axes.step(order, best_so_far(reported, sign), where="post", color=style.champion)
    losses = sorted(sign * value for value in values)
    least, most_of_them, worst = losses[0], losses[len(losses) * 9 // 10], losses[-1]
    if worst - least > _WIDE * (most_of_them - least) > 0:  # a few outliers would hide all other values
        margin = 0.1 * (most_of_them - least)
        axes.set_ylim(*sorted((sign * (least - margin), sign * (most_of_them + margin))))
    axes.set_title("best so far, at the largest resource")
    axes.set_xlabel("values in order of arrival")
    axes.set_ylabel("value")


def _draw_configs(
    axes: Axes,
    rows: Sequence[Mapping[str, Any]],
    space: Mapping[str, Mapping[str, Any]],
    sign: float,
    style: Look,
) -> None:
    """Draw each config as a line over all parameters, the best quarter in colour."""
    ranked = sorted(rows, key=lambda row: sign * row["value"], reverse=True)
    good = len(ranked) - max(len(ranked) // 4, 1)
    lines = []
    for rank, row in enumerate(ranked):
        places = _places_of(row, space)
        last = rank == len(ranked) - 1
        colour = style.champion if last else style.rising if rank >= good else style.waiting
        wide = 2.2 if last else 1.0 if rank >= good else 0.6
        lines.append(([*places, (float(len(space)), rank / max(len(ranked) - 1, 1))], colour, wide))
    draw_lines(axes, lines, space, style)
    axes.axvline(len(space), color=style.quiet, linewidth=0.8)
    axes.text(len(space) + 0.03, 1, "best", size=7.5, color=style.quiet, va="center")
    axes.set_xticks(range(len(space) + 1), [*map(_shorten, space), "rank"])
    axes.set_xlim(-0.1, len(space) + 0.3)


def _places_of(row: Mapping[str, Any], space: Mapping[str, Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return the points of a config: the index of each of its parameters, and a position from 0 to 1."""
    return [
        (float(axis), code_of(declaration, row[f"config_{name}"]))
        for axis, (name, declaration) in enumerate(space.items())
        if f"config_{name}" in row
    ]


def draw_lines(
    axes: Axes,
    lines: Sequence[tuple[Sequence[tuple[float, float]], str, float]],
    space: Mapping[str, Mapping[str, Any]],
    style: Look,
) -> None:
    """Draw configs as lines over all parameters: the places of each line, its colour and its width."""
    for places, colour, wide in lines:
        axes.plot(*zip(*places, strict=True), color=colour, linewidth=wide, alpha=1 if wide > 2 else 0.8)
    for at, declaration in enumerate(space.values()):
        axes.axvline(at, color=style.quiet, linewidth=0.8)
        for position, text in marks_of(declaration):
            paper = {"facecolor": style.paper, "edgecolor": "none", "alpha": 0.8, "pad": 0.6}
            axes.text(at + 0.03, position, text, size=7.5, color=style.quiet, va="center", bbox=paper)
    axes.set_xticks(range(len(space)), [*map(_shorten, space)])
    axes.set_yticks([])
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.grid(visible=False)
    if len(space) > 4:
        axes.tick_params(axis="x", labelrotation=30)


def _shorten(name: str) -> str:
    """Return the name of a parameter, without its middle if it is long."""
    return name if len(name) <= 28 else f"{name[:3]}…{name[-24:]}"


def marks_of(declaration: Mapping[str, Any]) -> list[tuple[float, str]]:
    """Return the labels on the axis of a parameter: its words, or its bounds."""
    if declaration["type"] == "choice":
        words = declaration["values"]
        few = words if len(words) <= _FEW else [words[0], words[-1]]
        return [(code_of(declaration, word), str(word)) for word in few]
    return [(0.0, f"{declaration['low']:.4g}"), (1.0, f"{declaration['high']:.4g}")]


def draw_importance(axes: Axes, shares: Mapping[str, float], style: Look) -> None:
    """Draw the share of each parameter as a bar, the largest at the top."""
    ranked = sorted(shares.items(), key=lambda share: share[1])
    axes.barh(range(len(ranked)), [share for _, share in ranked], color=style.champion, height=0.6)
    axes.set_yticks(range(len(ranked)), [_shorten(name) for name, _ in ranked])
    for at, (_, share) in enumerate(ranked):
        axes.text(share + 0.01, at, f"{share:.0%}", size=8.5, color=style.quiet, va="center")
    axes.set_xlim(0, max(0.1, 1.15 * max(shares.values(), default=0)))
    axes.locator_params(axis="x", steps=[1, 2, 5, 10])
    axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(
        "share of the variance of ranks that parameters\n"
        "explain alone, in bins, corrected for chance;\n"
        "joint effects are not seen",
        size=8,
    )


_BINS = 5
_IN_A_BIN = 6
"""Minimum number of trials per bin, on average."""


def values_at_common_resource(values: Sequence[Mapping[str, Any]]) -> tuple[int, list[Mapping[str, Any]]]:
    """Return the largest resource that many trials have reached, and their values there.

    Many are half as many as have reached the most common resource. At higher resources there are only
    promoted trials, which are similar.
    """
    at: dict[int, dict[int, Mapping[str, Any]]] = {}
    for row in values:
        at.setdefault(row["resource"], {})[row["trial"]] = row
    most = max(map(len, at.values()))
    level = max(resource for resource, rows in at.items() if 2 * len(rows) >= most)
    return level, list(at[level].values())


def is_feasible(row: Mapping[str, Any]) -> bool:
    """Return whether a row of a history violates no constraint."""
    return all(each <= 0 for name, each in row.items() if name.startswith("constraint_"))


def best_so_far(values: Sequence[Mapping[str, Any]], sign: float) -> list[float]:
    """Return the value of the incumbent after each value: the best value at the largest resource so far.

    >>> rows = [{"resource": 1, "value": 0.5}, {"resource": 1, "value": 0.4}, {"resource": 3, "value": 0.45}]
    >>> best_so_far(rows, 1.0)
    [0.5, 0.4, 0.45]
    """
    best: tuple[float, float] = (math.inf, math.inf)
    bests = []
    for row in values:
        best = min(best, (-row["resource"], sign * row["value"]))
        bests.append(sign * best[1])
    return bests


def code_of(declaration: Mapping[str, Any], value: Any) -> float:
    """Return the position of a value between the bounds of its parameter, from 0 to 1.

    >>> code_of({"type": "float", "low": 0.01, "high": 1, "log": True}, 0.1)
    0.5
    >>> code_of({"type": "choice", "values": ["a", "b", "c"]}, "b")
    0.5
    """
    if declaration["type"] == "choice":
        words = [(isinstance(word, bool), word) for word in declaration["values"]]
        return words.index((isinstance(value, bool), value)) / max(len(words) - 1, 1)
    low, high = declaration["low"], declaration["high"]
    if low == high:
        return 0.5
    if declaration["log"]:
        return math.log(value / low) / math.log(high / low)
    return float((value - low) / (high - low))


def importance(rows: Sequence[Mapping[str, Any]], space: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the share of each parameter in the variance of the values that parameters explain alone.

    Values are ranked, so that an outlier does not outweigh all others. Numbers are divided into up to five
    bins with equal numbers of trials. Each word is a bin, and so is a missing parameter. What the bins
    explain by chance is subtracted. Shares add up to 1, unless no parameter explains anything. Joint effects
    of parameters are not measured.
    """
    ranks = np.argsort(np.argsort([row["value"] for row in rows], kind="stable"), kind="stable")
    explained = {
        name: _explained_variance(ranks, _bins(rows, name, parameter)) for name, parameter in space.items()
    }
    total = sum(explained.values()) or 1.0
    return {name: variance / total for name, variance in explained.items()}


def _bins(rows: Sequence[Mapping[str, Any]], name: str, declaration: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return the number of each row's bin."""
    codes = np.array(
        [code_of(declaration, row[key]) if (key := f"config_{name}") in row else -1 for row in rows]
    )
    exists = codes >= 0
    if declaration["type"] != "choice" and exists.any():
        count = max(min(_BINS, len(rows) // _IN_A_BIN), 1)
        cuts = np.quantile(codes[exists], np.arange(1, count) / count)
        codes = np.where(exists, np.searchsorted(cuts, codes, side="right"), -1)
    return np.unique(codes, return_inverse=True)[1]


def _explained_variance(ranks: NDArray[np.intp], bins: NDArray[np.intp]) -> float:
    count, total = int(bins.max()) + 1, float(((ranks - ranks.mean()) ** 2).sum())
    if count == 1 or count == len(ranks) or not total:
        return 0.0
    within = sum(
        float(((ranks_of_bin - ranks_of_bin.mean()) ** 2).sum())
        for at in range(count)
        for ranks_of_bin in [ranks[bins == at]]
    )
    return max(1 - within / total * (len(ranks) - 1) / (len(ranks) - count), 0.0)


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
        lines = [
            (_places_of(row, space), style.champion, 1.4)
            if row["trial"] in front
            else (_places_of(row, space), style.waiting, 0.6)
            for row in sorted(rows, key=lambda row: row["trial"] in front)
        ]
        draw_lines(axes[1], lines, space, style)
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
    for trials, colour, marker in (
        ([row for row in rows if not is_feasible(row)], style.worse, "x"),
        ([row for row in rows if is_feasible(row) and row["trial"] not in front], style.waiting, "o"),
        (best, style.champion, "o"),
    ):
        first, second = ([row[key] for row in trials] for key in keys[:2])
        axes.scatter(first, second, s=14, color=colour, marker=marker, linewidths=0.8)
    if len(keys) == 2:
        along = ([row[key] for row in best] for key in keys)
        axes.plot(*along, color=style.champion, linewidth=1)
    axes.set_title("values of trials" + (", the first two objectives" if len(keys) > 2 else ""))
    axes.set_xlabel(keys[0].removeprefix("value_"))
    axes.set_ylabel(keys[1].removeprefix("value_"))
