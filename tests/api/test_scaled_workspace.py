"""A model that scales numbers and labels predicts only by its own class, in the user's units."""

import copy
from pathlib import Path
from typing import Any

import pytest

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, InputError, OptionError, Workspace
from onlineauto.interop import from_dicts
from onlineauto.workspace.run import Run
from onlineauto.workspace.warm_start import challenge, warm_start
from tests.api.events import saved

pytestmark = pytest.mark.lane("quick")
RENTS = [({"rooms": 1 + k % 4}, 300.0 * (1 + k % 4)) for k in range(400)]
EVENT = {"context": {"rooms": 3}}
LABELLED = EVENT | {"label": 1300.0}


def regressor() -> AutoMLRegressor:
    return AutoMLRegressor(live_configs=1).fit(RENTS)


@pytest.mark.parametrize(
    "use",
    [
        lambda workspace: workspace.predict(EVENT),
        lambda workspace: workspace.predict_each([EVENT]),
        lambda workspace: workspace.predict_block(next(from_dicts([EVENT]))),
        lambda workspace: workspace.learn(LABELLED),
        lambda workspace: workspace.learn_block(next(from_dicts([LABELLED]))),
        lambda workspace: workspace.fit(["1 | a"]),
        lambda workspace: workspace.stream(["1 | a"]),
        lambda workspace: workspace.scored(EVENT, bool),
        lambda workspace: workspace.predictor(),
        lambda workspace: workspace.fork().predictor(),
        lambda workspace: copy.deepcopy(workspace).predictor(),
        lambda workspace: workspace.save("m.oam"),
        lambda workspace: workspace.save("m.oam", predict_only="ensemble"),
        lambda workspace: Run(workspace, []).checkpoint("m.oam"),
    ],
    ids=[
        "predict",
        "predict_each",
        "predict_block",
        "learn",
        "learn_block",
        "fit",
        "stream",
        "scored",
        "predictor",
        "fork",
        "copy",
        "save",
        "spin-off",
        "checkpoint",
    ],
)
def test_the_workspace_of_a_regressor_neither_learns_nor_predicts(use: Any) -> None:
    model = regressor()
    for workspace in (model.workspace, AutoMLRegressor.load(saved(model)).workspace):
        with pytest.raises(OptionError, match=r"are scaled by its model: call fit, learn, predict"):
            use(workspace)
    assert model.predict({"rooms": 3}) == pytest.approx(900, rel=0.01)


@pytest.mark.parametrize(
    "model",
    [regressor(), AutoMLClassifier(live_configs=1).fit([({"rooms": 1}, "a"), ({"rooms": 2}, "b")] * 20)],
    ids=["regressor", "classifier"],
)
def test_a_file_with_scaled_numbers_is_read_only_by_its_class(model: Any) -> None:
    name, content = type(model).__name__, saved(model)
    says = rf"a model of {name}, which scales numbers and labels: use {name}\.load\(…\)\.predict"
    for options in ({}, {"testonly": True}):
        with pytest.raises(InputError, match=says):
            Workspace.load(content, **options)
    with pytest.raises(InputError, match=says):
        AutoML().warm_start(content)
    with pytest.raises(InputError, match=rf"not saved by AutoML: {name}\.load reads it"):
        AutoML.load(content)
    assert type(model).load(content).predict({"rooms": 1}) == model.predict({"rooms": 1})


@pytest.mark.parametrize("use", [warm_start, challenge])
def test_a_scaled_workspace_shares_no_champion(use: Any) -> None:
    model, other = regressor(), Workspace(live_configs=4)
    for target, source in ((other, model.workspace), (AutoMLRegressor().workspace, other)):
        with pytest.raises(OptionError, match="its own scale of numbers and labels"):
            use(target, source)


def test_a_small_file_names_the_class_that_reads_it(tmp_path: Path) -> None:
    event = "shared |user tom\n0:-1:0.5 |page a\n|page b\n"
    AutoML().fit([event] * 9).workspace.save(tmp_path / "small.oam", predict_only="ensemble")
    with pytest.raises(OptionError, match=r"in Python with Workspace\.load\(…, testonly=True\)"):
        AutoML.load(tmp_path / "small.oam")
