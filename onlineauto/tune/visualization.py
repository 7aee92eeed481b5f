"""Pictures of a study by the names of Optuna's plots. They are `Picture` objects, and need matplotlib."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import InputError, OptionError
from onlineauto.pictures.picture import Picture, shorten
from onlineauto.pictures.studies import code_of, importance, marks_of
from onlineauto.tune.drawing import draw_study
from onlineauto.tune.trial import TrialState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from onlineauto.tune.study import Study
    from onlineauto.tune.trial import Trial

    Target = Callable[[Any], float] | None

_VALUE: Final = "Objective Value"
_MOST_PAIRS: Final = 6

plot_optimization_history = plot_param_importances = plot_parallel_coordinate = plot_pareto_front = draw_study
"""The pictures that `draw_study` draws together."""


class _Points:
    """The complete trials of a study with their values, and the parameters to draw."""

    def __init__(self, study: Study, target: Target, params: Sequence[str] | None = None) -> None:
        if len(study.objectives) > 1 and target is None:
            raise OptionError("the study has several objectives: give target=lambda trial: trial.values[0]")
        most = study.settings.setting.max_resource
        complete = [trial for trial in study.trials if TrialState.of(trial, most) is TrialState.COMPLETE]
        pairs = [(trial, float((target or _value)(trial))) for trial in complete]
        self.trials = [trial for trial, value in pairs if math.isfinite(value)]
        self.values = [value for _, value in pairs if math.isfinite(value)]
        if not self.trials:
            raise InputError(f"the study {study.name!r} has nothing to draw: no complete trial has a value")
        space = study.space.described()
        if missing := [name for name in params or () if name not in space]:
            raise OptionError(f"params: {missing[0]!r} is not in the space; it has {', '.join(space)}")
        self.space = {name: space[name] for name in params or space}
        self.rows: list[dict[str, Any]] = [
            {"value": value} | {f"config_{name}": cell for name, cell in trial.config.items()}
            for trial, value in zip(self.trials, self.values, strict=True)
        ]

    def codes(self, name: str) -> np.ndarray:
        """Return the position of a parameter in each trial, from 0 to 1; NaN where it does not exist."""
        return np.array(
            [
                code_of(self.space[name], row[f"config_{name}"]) if f"config_{name}" in row else math.nan
                for row in self.rows
            ]
        )


def plot_slice(
    study: Study,
    params: Sequence[str] | None = None,
    *,
    target: Target = None,
    target_name: str = _VALUE,
    dark: bool = False,
) -> Picture:
    """Draw the value of each complete trial over each parameter, later trials darker.

    Parameters
    ----------
    study : Study
        The study.
    params : sequence of str, optional
        The parameters; by default all.
    target : callable, optional
        Returns the number of a trial to draw; needed with several objectives.
    target_name : str
        The name of this number.
    dark : bool
        True for a dark background.
    """
    points = _Points(study, target, params)
    picture, panels = _panels(len(points.space), "Values over each parameter", study, dark)
    with picture.drawing() as look:
        shades: Any = np.linspace(0.25, 1, len(points.values))
        for axes, name in zip(panels, points.space, strict=False):
            axes.scatter(
                points.codes(name), points.values, s=16, color=look.champion, alpha=shades, linewidths=0
            )
            _mark(axes.xaxis, points.space[name])
            axes.set_title(shorten(name))
            axes.set_ylabel(target_name)
    return picture


def plot_contour(
    study: Study,
    params: Sequence[str] | None = None,
    *,
    target: Target = None,
    target_name: str = _VALUE,
    dark: bool = False,
) -> Picture:
    """Draw the values of complete trials over each pair of parameters, at most six pairs; as `plot_slice`."""
    points = _Points(study, target, params)
    ranked = sorted(points.space, key=lambda name: -importance(points.rows, points.space)[name])
    pairs = list(combinations(ranked, 2))[:_MOST_PAIRS]
    if not pairs:
        raise OptionError(f"plot_contour needs two parameters; the study has {', '.join(points.space)}")
    picture, panels = _panels(len(pairs), f"{target_name} over pairs of parameters", study, dark)
    with picture.drawing() as look:
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("values", [look.champion, look.rising, look.paper])
        values = np.array(points.values)
        for axes, (first, second) in zip(panels, pairs, strict=False):
            x, y = points.codes(first), points.codes(second)
            both = np.isfinite(x) & np.isfinite(y)
            distinct = np.unique(np.column_stack([x, y])[both], axis=0)
            if np.linalg.matrix_rank(distinct - distinct[:1], tol=1e-9) == 2:
                drawn = axes.tricontourf(x[both], y[both], values[both], levels=12, cmap=colours)
                picture.figure.colorbar(drawn, ax=axes)
            axes.scatter(x[both], y[both], s=9, color=look.ink, linewidths=0)
            for axis, name in ((axes.xaxis, first), (axes.yaxis, second)):
                _mark(axis, points.space[name])
                axis.set_label_text(shorten(name))
    return picture


def plot_timeline(study: Study, n_recent_trials: int | None = None, *, dark: bool = False) -> Picture:
    """Draw when each trial of an objective began and ended, in the colour of its state."""
    timed = [trial for trial in study.trials if trial.times is not None][-(n_recent_trials or 0) :]
    if not timed:
        raise InputError(f"the study {study.name!r} has no times: no trial of an objective has ended")
    start = min(trial.times[0] for trial in timed if trial.times)
    picture, (axes,) = _panels(1, "When trials ran", study, dark)
    with picture.drawing() as look:
        colours = {"COMPLETE": look.champion, "PRUNED": look.rising, "FAIL": look.worse}
        for state, colour in colours.items():
            most = study.settings.setting.max_resource
            rows = [trial for trial in timed if TrialState.of(trial, most) == state]
            spans = [(trial.number, *trial.times) for trial in rows if trial.times]
            left, width = [began - start for _, began, _ in spans], [end - began for _, began, end in spans]
            if rows:
                axes.barh([number for number, *_ in spans], width, left=left, color=colour, label=state)
        axes.set_xlabel("seconds since the first trial")
        axes.set_ylabel("trial")
        axes.legend()
    return picture


def plot_edf(
    study: Study | Sequence[Study], *, target: Target = None, target_name: str = _VALUE, dark: bool = False
) -> Picture:
    """Draw the share of complete trials with at most each value, one line for each study."""
    studies: list[Study] = [*study] if isinstance(study, list | tuple) else [study]  # type: ignore[list-item]
    picture, (axes,) = _panels(1, "Shares of trials up to each value", studies[0], dark)
    with picture.drawing():
        for each in studies:
            axes.ecdf(_Points(each, target).values, label=each.name)
        axes.set_xlabel(target_name)
        axes.set_ylabel("share of trials")
        axes.legend()
    return picture


def plot_intermediate_values(study: Study, *, dark: bool = False) -> Picture:
    """Draw the reported values of each trial of an objective."""
    curves = [getattr(trial, "intermediate_values", {}) for trial in study.trials]
    if not any(curves):
        raise InputError(f"the study {study.name!r} has nothing to draw: no objective has reported a value")
    picture, (axes,) = _panels(1, "Reported values", study, dark)
    with picture.drawing() as look:
        for curve in filter(None, curves):
            axes.plot(curve.keys(), curve.values(), color=look.champion, alpha=0.4, linewidth=1, marker=".")
        axes.set_xlabel("step")
    return picture


def _panels(count: int, title: str, study: Study, dark: bool) -> tuple[Picture, list[Axes]]:
    """Return a picture with a number of panels, three in a row."""
    columns = min(count, 3)
    rows = -(-count // columns)
    wide, high = (8.0, 4.5) if count == 1 else (3.6 * columns, 3.2 * rows + 0.5)
    picture = Picture(wide, high, title=title, note=f"study {shorten(study.name)}", dark=dark)
    with picture.drawing():
        panels = list(picture.figure.subplots(rows, columns, squeeze=False).ravel())
    for panel in panels[count:]:
        panel.set_visible(False)
    return picture, panels[:count]


def _mark(axis: Any, declaration: Mapping[str, Any]) -> None:
    """Label an axis of codes with the words or the bounds of a parameter."""
    marks = marks_of(declaration)
    axis.set_ticks([code for code, _ in marks], [shorten(text, 12) for _, text in marks])


def _value(trial: Trial) -> float:
    return math.nan if trial.value is None else trial.value
