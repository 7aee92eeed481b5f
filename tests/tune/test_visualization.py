"""`onlineauto.tune.visualization`: what the plots contain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto.errors import InputError, OptionError
from onlineauto.tune import Float, Study, TrialPruned, create_study
from onlineauto.tune import visualization as plots
from onlineauto.tune.samplers import RandomSampler

pytestmark = [pytest.mark.lane("ci"), pytest.mark.filterwarnings("error")]


def objective(trial: Any) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1, log=True)
    depth = trial.suggest_int("depth", 0, 8, step=2)
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        rate += trial.suggest_float("extra", 0, 1)
    for step in range(3):
        trial.report(rate + depth - step, step)
    if trial.number == 5:
        raise TrialPruned
    return float("nan") if trial.number == 7 else float(rate + depth)


def done(n_trials: int = 30) -> Any:
    study = create_study(study_name="rates", sampler=RandomSampler(1))
    study.optimize(objective, n_trials=n_trials)
    return study


def test_a_slice_has_a_panel_for_each_parameter(tmp_path: Path) -> None:
    study = done()
    picture = plots.plot_slice(study)
    panels = [axes for axes in picture.figure.axes if axes.get_visible()]
    assert [axes.get_title("left") for axes in panels] == ["rate", "depth", "kind", "extra"]
    depth = np.asarray(panels[1].collections[0].get_offsets())
    complete = [trial for trial in study.trials if trial.state == "COMPLETE"]
    assert depth[:, 1].tolist() == [trial.value for trial in complete]
    assert depth[:, 0].tolist() == [trial.params["depth"] / 8 for trial in complete]
    assert [text.get_text() for text in panels[2].get_xticklabels()] == ["a", "b"]
    for name in ("one.svg", "other.svg"):
        plots.plot_slice(study, ["rate"], dark=True).save(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()
    with pytest.raises(OptionError, match=r"params: 'width' is not in the space; it has rate, depth"):
        plots.plot_slice(study, ["width"])


def test_a_contour_has_a_panel_for_each_pair() -> None:
    picture = plots.plot_contour(done(), ["rate", "depth", "extra"])
    panels = [axes for axes in picture.figure.axes if axes.get_xlabel()]
    assert {frozenset((axes.get_xlabel(), axes.get_ylabel())) for axes in panels} == {
        frozenset(pair) for pair in (("rate", "depth"), ("rate", "extra"), ("depth", "extra"))
    }
    few = plots.plot_contour(done(2), ["rate", "depth"])  # two points span no area
    assert len(few.figure.axes[0].collections) == 1
    with pytest.raises(OptionError, match="plot_contour needs two parameters"):
        plots.plot_contour(done(), ["rate"])


def test_a_timeline_has_a_bar_for_each_trial() -> None:
    study = done()
    (axes,) = plots.plot_timeline(study).figure.axes
    assert {bars.get_label(): len(bars) for bars in axes.containers} == {
        "COMPLETE": 28,
        "PRUNED": 1,
        "FAIL": 1,
    }
    (axes,) = plots.plot_timeline(study, n_recent_trials=4).figure.axes
    assert [len(bars) for bars in axes.containers] == [4]
    trainable = Study({"x": Float(0, 1)}, "fifo", max_trials=2, max_resource=1)
    trainable.run(lambda config: config["x"])
    with pytest.raises(InputError, match="no trial of an objective has ended"):
        plots.plot_timeline(trainable)
    assert len(plots.plot_slice(trainable).figure.axes) == 1


def test_shares_of_trials_rise_to_one_for_each_study() -> None:
    study, other = done(), done(12)
    (axes,) = plots.plot_edf([study, other], target=lambda trial: trial.params["depth"]).figure.axes
    assert len(axes.lines) == 2
    for line in axes.lines:
        assert np.asarray(line.get_ydata())[-1] == 1
        assert {*np.asarray(line.get_xdata())[1:].tolist()} <= {0, 2, 4, 6, 8}


def test_reported_values_are_curves() -> None:
    study = done(6)
    (axes,) = plots.plot_intermediate_values(study).figure.axes
    assert [np.asarray(line.get_ydata()).tolist() for line in axes.lines] == [
        list(trial.intermediate_values.values()) for trial in study.trials
    ]


def test_studies_with_nothing_to_draw_and_several_objectives_are_named() -> None:
    with pytest.raises(InputError, match="no complete trial has a value"):
        plots.plot_edf(create_study())
    with pytest.raises(InputError, match="no objective has reported a value"):
        plots.plot_intermediate_values(create_study())
    several = create_study(directions=["minimize", "maximize"])
    several.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.params["x"]), n_trials=5)
    with pytest.raises(OptionError, match="several objectives: give target="):
        plots.plot_slice(several)
    assert plots.plot_slice(several, target=lambda trial: trial.values[1], target_name="x").figure.axes
    assert plots.plot_pareto_front(several).figure.axes
