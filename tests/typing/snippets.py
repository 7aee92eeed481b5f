"""Programs of users. A wrong line says so with ``type: ignore``; one that a checker takes is an error too."""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from onlineauto import (
    AutoML,
    AutoMLClassifier,
    AutoMLRegressor,
    Block,
    Choice,
    Evaluation,
    InputError,
    Predictor,
    Workspace,
    convert,
)
from onlineauto.autovw import AutoVW
from onlineauto.interop import from_dicts
from onlineauto.obp import events_of


def serve() -> None:
    """Rank and learn."""
    bandit = AutoML(live_configs=4, epsilon=0.05, seed=1, default_reward=0.0)
    choice = bandit.rank({"user": "tom", "age": 30}, {"a": {"topic": "art"}, "b": {"price": 2.5}})
    assert_type(choice, Choice)
    assert_type(choice.action, int)
    assert_type(choice.probability, float)
    assert_type(choice.pmf, NDArray[np.float32])
    bandit.learn(choice, reward=1)
    bandit.learn(choice.event_id, cost=-0.5)
    bandit.learn({"x": 1}, [{"y": 1}], action=0, probability=1.0, reward=1)
    assert_type(bandit.average_reward, float)
    assert_type(bandit.champion.interactions, tuple[str, ...])
    bandit.save(Path("a.model"))
    assert_type(AutoML.load("a.model"), AutoML)
    AutoML({"epsilon": 0.1})  # type: ignore[arg-type,call-arg]
    AutoML(epsilon="much")  # type: ignore[arg-type]
    AutoML(quadratics="::")  # type: ignore[call-arg]
    bandit.learn(choice, 1.0)  # type: ignore[call-overload]
    assert_type(bandit.fit_table("log.parquet", actions="a", reward="r", probability="p"), AutoML)
    bandit.fit([{"context": {}, "actions": [{"x": 1}], "chosen": 0, "reward": 1, "probability": 1.0}])
    bandit.fit("log.txt", actions="a")  # type: ignore[call-arg]
    bandit.fit([{"x": 1}], [1.0])  # type: ignore[arg-type,call-arg]
    bandit.rank("tom", [])  # type: ignore[arg-type]
    actions = [{"x": 1}, {"x": 2}]
    assert_type(bandit.predict({"u": 1}, actions), NDArray[np.float32])
    assert_type(bandit.predict([{"u": 1}], actions), NDArray[np.float32])
    assert_type(bandit.predict([{"u": 1}], [actions]), list[NDArray[np.float32]])


def predict() -> None:
    """Learn numbers and classes."""
    model = AutoMLRegressor().fit([({"rooms": 2, "town": "Bonn"}, 1200.0)])
    assert_type(model, AutoMLRegressor)
    assert_type(model.predict({"rooms": 3}), float)
    classes = AutoMLClassifier()
    classes.learn({"x": 1.0}, "red")
    proba = classes.predict_proba({"x": 2.0})
    assert_type(proba, dict[Any, float])
    model.learn({"x": 1.0}, weight=2.0)  # type: ignore[call-arg]
    assert_type(model.fit(np.ones((2, 1)), [1.0, 2.0], sample_weight=[1, 2]), AutoMLRegressor)
    assert_type(model.fit_table("rents.parquet", label="rent"), AutoMLRegressor)
    model.fit("rents.txt", label="rent")  # type: ignore[call-overload]


def learn(paths: list[Path], block: Block) -> None:
    """Use a workspace."""
    workspace = Workspace(cb_explore_adf=True, quadratic=["ua"], epsilon=0.1, automl=4).fit("log.txt.gz")
    for read, outcomes in workspace.stream(paths[0]):
        assert_type(read, Block)
        assert_type(outcomes.prediction, NDArray[np.float32])
    [made] = from_dicts([{"context": {"x": 1}, "label": 2.0}])
    workspace.predict_block(made)
    assert_type(Workspace.load("a.model").predictor(), Predictor)
    convert(paths[0], "log.blocks", cb_explore_adf=True)
    Workspace(automl=2, members=["features", "waves"], search=("interactions",), cost_range=(0, 1.5))
    Workspace(cb_explore_adf="yes")  # type: ignore[arg-type]
    Workspace(quadratics=3)  # type: ignore[call-arg]
    options: dict[str, Any] = {"cb_explore_adf": True}
    Workspace(**options)
    Evaluation({"mine": workspace}, bounds=2)  # type: ignore[call-arg]


def adapt(feedback: dict[str, Any]) -> None:
    """Come from other libraries."""
    auto = AutoVW(max_live_model_num=5, search_space={"interactions": AutoVW.AUTOMATIC})
    assert_type(auto.predict("|a x"), float)
    try:
        AutoML().fit(events_of(feedback))
    except InputError as error:
        str(error)
