"""Models to predict with: all that predicts now, to the bit, and nothing that only learning needs."""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import InputError, OptionError, Workspace
from onlineauto.automl.decisions import PredictWith
from onlineauto.cli.main import main
from onlineauto.workspace.model_file import decode_tree, encode_tree
from onlineauto.workspace.warm_start import challenge
from tests.engine.ensemble_streams import bent, numbered, odd
from tests.naive.native_search.streams import slots

SEARCH: dict[str, Any] = {"automl": 3, "default_lease": 60, "bit_precision": 12}
BANDIT = SEARCH | {"cb_explore_adf": True}
LINES = SEARCH | {"predict_with": "ensemble"}
LATE = b"shared |x y:3 |unheard a b:2\n0:1:.5 |a q:2 |unheard z\n|b z\n\n"

SHAPES: list[Any] = [
    pytest.param(BANDIT, partial(odd, 1200, numbers=2), "ensemble", id="actions"),
    pytest.param(SEARCH | {"cb_adf": True}, partial(odd, 900, numbers=2), "ensemble", id="costs of actions"),
    pytest.param(BANDIT, partial(odd, 150, actions=129), None, id="many actions of words"),
    pytest.param(BANDIT | {"members": "none"}, partial(odd, 900, numbers=2), None, id="no members"),
    pytest.param(SEARCH | {"cb_explore": 3}, partial(numbered, 900, 3), None, id="numbered actions"),
    pytest.param(SEARCH | {"cb": 3}, partial(numbered, 900, 3), None, id="costs of numbered actions"),
    pytest.param(LINES, partial(bent, 700), "ensemble", id="lines"),
    pytest.param(LINES | {"predict_with": "mix"}, partial(bent, 700), "mix", id="a mix of lines"),
    pytest.param(
        LINES | {"predict_with": "champion"}, partial(bent, 700), "champion", id="champion of lines"
    ),
    pytest.param(SEARCH | {"ccb_explore_adf": True}, partial(slots, 300), None, id="slots"),
    pytest.param(BANDIT | {"bag": 3}, partial(odd, 300), "champion", id="an ensemble"),
    pytest.param({"cb_explore_adf": True, "bit_precision": 12}, partial(odd, 300), None, id="no search"),
]


def saved(workspace: Workspace, **how: Any) -> bytes:
    file = io.BytesIO()
    workspace.save(file, **how)
    return file.getvalue()


def small(workspace: Workspace) -> bytes:
    return saved(workspace, predict_only="ensemble")


@cache
def learnt() -> Workspace:
    return Workspace(**BANDIT).fit(odd(1000, numbers=2))


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def let_serve(workspace: Workspace) -> None:
    configs = workspace.searching.live_configs
    configs.apply(PredictWith("ensemble", "loss"), workspace.learner.model)


def predictions(asked: Any, text: bytes, reader: Workspace) -> list[bytes]:
    """Return the predictions of each block: scores, their order, probabilities."""
    found = (asked.predict_block(block) for block in reader.read(text))
    return [
        b"".join(getattr(each, name).tobytes() for name in ("score", "action", "prediction"))
        for each in found
    ]


def by_loaded(model: bytes, text: bytes, reader: Workspace) -> Iterator[list[bytes]]:
    """Return the predictions of a model by each method that predicts."""
    loaded = Workspace.load(model, testonly=True)
    for each in (loaded, loaded.predictor(), copy.deepcopy(loaded)):
        yield predictions(each, text, reader)


def by_run(model: bytes, text: bytes) -> list[bytes]:
    """Return the predictions of a predict-only run; it draws for slots in another order."""
    run = (outcomes for _, outcomes in Workspace.load(model, testonly=True).stream(text))
    return [each.score.tobytes() + each.action.tobytes() + each.prediction.tobytes() for each in run]


@pytest.mark.parametrize(("options", "stream", "who"), SHAPES)
def test_it_predicts_as_the_whole_model_does(
    options: dict[str, Any], stream: Callable[[], bytes], who: str | None
) -> None:
    text = stream()
    late = LATE if b"\n\n" in text and "ccb_explore_adf" not in options else b""
    workspace = Workspace(**options).fit(text)
    if who is None and ensemble_of(workspace).on:  # as if it were proved better
        let_serve(workspace)
    assert workspace.searching.predicts[0] == (who or ("ensemble" if "automl" in options else "champion"))
    before, model = saved(workspace), small(workspace)
    assert saved(workspace) == before
    assert len(model) < len(before)
    assert saved(Workspace.load(model, testonly=True)) == model
    expected = predictions(workspace, text + late, workspace)
    for found in (*by_loaded(model, text + late, workspace), *by_loaded(before, text + late, workspace)):
        assert found == expected
    assert by_run(model, text + late) == by_run(before, text + late)


@pytest.mark.parametrize("resting", [(), ("features", "crosses in pairs"), ("waves",)])
def test_model_has_only_the_arrays_that_predictions_need(resting: tuple[str, ...]) -> None:
    workspace = learnt().fork()
    ensemble = ensemble_of(workspace)
    names = "features", "waves", "", "crosses in pairs", *("",) * 7
    ensemble.members.rests[:] = [name in resting for name in names]
    ensemble.weights[[1, ensemble.n_levels + 2]] = 0.0  # so live config 1 and its level have no say
    model = small(workspace)
    tree = decode_tree(model, name="the model")["model"]
    live = tree["search"]["slots"]
    assert tree["predicts_only"]
    assert tree["learner"]["model"]["shape"] == [1 << 12, 4, 4]
    assert "statistics" not in tree["learner"]["model"]
    assert [each["elements"] for each in live["configs"]] == [
        list(map(list, each.elements))
        for each in np.array(workspace.searching.live_configs.configs, object)[[0, 2]]
    ]
    assert live["arrays"].keys() == {"mix"}
    assert live["ensemble"].keys() == {
        *(
            "version",
            "serves",
            "tests",
            "weights",
            "range",
            "shrinkage",
            "scores",
            "rests",
            "inputs",
            "members",
        ),
    }
    assert "latest" not in live["ensemble"]["inputs"]
    for part in ("features", "waves", "layer", "crosses", "baseline", "ridge"):
        assert "spread" not in live["ensemble"]["members"][part]
    assert (live["ensemble"]["members"]["features"]["weights"].size == 0) == ("features" in resting)
    assert (live["ensemble"]["members"]["waves"]["weights"].size == 0) == ("waves" in resting)
    assert live["ensemble"]["members"]["crosses"]["weights"][1].any() == ("crosses in pairs" not in resting)
    text = odd(200, numbers=2)
    expected = predictions(workspace, text, workspace)
    assert all(found == expected for found in by_loaded(model, text, workspace))


def test_model_has_the_champion_before_the_ensemble_is_proved_better() -> None:
    young = Workspace(**BANDIT).fit(odd(1, numbers=2))
    assert young.searching.predicts[0] == "champion"
    assert small(young) == saved(young, predict_only=True) == saved(young, predict_only="champion")
    lines = Workspace(**LINES).fit(bent(1))
    assert lines.searching.predicts[0] == "mix"
    assert Workspace.load(small(lines), testonly=True).searching.predicts[0] == "mix"


def test_the_champion_of_it_can_be_asked_alone() -> None:
    text = odd(200, numbers=2)
    champion = Workspace.load(small(learnt()), testonly=True, predict_with="champion")
    assert predictions(champion, text, learnt()) == predictions(
        learnt().fork(predict_with="champion"), text, learnt()
    )


def test_nothing_is_compiled_that_learns() -> None:
    text = odd(50, numbers=2)
    loaded = Workspace.load(small(learnt()), testonly=True)
    list(loaded.stream(text))
    loaded.predict_block(next(iter(loaded.read(text))))
    for memory in (loaded._runner._memory, loaded._asked._memory):
        units = memory._units
        assert units is not None
        assert units.score_ensemble > 0
        assert (units.learn_ensemble, units.before_event, units.after_event) == (0, 0, 0)


def test_a_run_that_only_predicts_leaves_the_search_as_it_is() -> None:
    whole = Workspace.load(saved(learnt()), testonly=True)
    before = saved(whole)
    for _ in whole.stream(LATE * 9):
        pass
    tree, later = (decode_tree(each, name="the model")["model"]["search"] for each in (before, saved(whole)))
    assert repr(tree) == repr(later)


# -- refusals ------------------------------------------------------------------------------------------


def test_it_cannot_learn() -> None:
    model = small(learnt())
    for options in ({}, {"testonly": False}):
        with pytest.raises(OptionError, match=r"saved to predict only: load it with --testonly"):
            Workspace.load(model, **options)
    loaded = Workspace.load(model, testonly=True)
    with pytest.raises(OptionError, match="only predicts"):
        challenge(loaded, learnt())
    event = odd(1, numbers=2).decode().split("\n\n")[0] + "\n"
    assert loaded.learn(event).tobytes() == loaded.predict(event).tobytes()
    with pytest.raises(OptionError, match='predict_only is True, "champion" or "ensemble", and not \'all\''):
        learnt().save(io.BytesIO(), predict_only="all")  # type: ignore[arg-type]


def put(number: float, at: int = 0) -> Callable[[Any], object]:
    def change(array: Any) -> object:
        array.ravel()[at] = number
        return array

    return change


NAN = put(float("nan"))
LONGER = partial(np.pad, pad_width=(0, 1))
FORGERIES: list[tuple[str, Callable[[Any], object]]] = [
    *((f"ensemble.{name}", NAN) for name in ("weights", "range", "inputs.mean", "inputs.cut")),
    *((f"ensemble.members.{name}.weights", NAN) for name in ("features", "waves", "crosses")),
    *((f"ensemble.{name}", LONGER) for name in ("weights", "range", "inputs.seen")),
    ("ensemble.serves", lambda _: 1),
    ("ensemble.inputs.tally", put(302)),
    ("ensemble.members.crosses.cells", lambda _: np.array([1 << 18], np.uint32)),
    ("ensemble.members.crosses.cells", lambda _: np.array([1, 0], np.uint32)),
    ("ensemble.members.crosses.cells", lambda array: array.astype(np.int64)),
    ("ensemble.members.crosses.weights", lambda array: array[:-1]),
    ("ensemble.members.features.weights", lambda array: np.zeros((33, array.shape[1]))),
    ("ensemble.members", lambda _: None),
    ("arrays.mix", NAN),
    ("arrays.mix", lambda array: array[:-1]),
    ("configs", lambda configs: configs[:-1]),
]


@pytest.mark.parametrize(("place", "change"), FORGERIES)
def test_error_names_the_damaged_part(place: str, change: Callable[[Any], object]) -> None:
    tree = decode_tree(small(learnt()), name="the model")
    *path, last = place.split(".")
    part = tree["model"]["search"]["slots"]
    for name in path:
        part = part[name]
    value = part[last]
    part[last] = change(value.copy() if isinstance(value, np.ndarray) else value)
    with pytest.raises(InputError, match=re.escape(place)):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))), testonly=True)


def test_it_cannot_pose_as_a_whole_model() -> None:
    tree = decode_tree(small(learnt()), name="the model")
    tree["model"]["predicts_only"] = False
    with pytest.raises(InputError, match="does not fit its own options"):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))), testonly=True)


# -- the command line ----------------------------------------------------------------------------------


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log.txt"
    log.write_bytes(odd(1000, numbers=2))
    search = f"-d {log} --cb_explore_adf --automl 3 --default_lease 60 -b 10 --quiet"
    assert main([*f"{search} -f {tmp_path}/whole.model".split()]) == 0
    names = f"--invert_hash {tmp_path}/n"
    assert main([*f"{search} -f {tmp_path}/ensemble.model --predict_only_ensemble {names}".split()]) == 0
    for name in ("whole", "ensemble"):
        words = f"-t -i {tmp_path}/{name}.model -d {log} -p {tmp_path}/{name}.p --quiet"
        assert main(words.split()) == 0
    assert (tmp_path / "whole.p").read_bytes() == (tmp_path / "ensemble.p").read_bytes()
    again = (
        f"-t -i {tmp_path}/ensemble.model --cb_explore_adf --automl 3 -d {log} -p {tmp_path}/again.p --quiet"
    )
    assert main(again.split()) == 0
    assert (tmp_path / "again.p").read_bytes() == (tmp_path / "ensemble.p").read_bytes()
    assert main(["inspect", f"{tmp_path}/ensemble.model"]) == 0
    printed = capsys.readouterr().out
    assert "the ensemble, to predict with" in printed
    assert "predicted by  the ensemble since event" in printed
    for words, message in [
        (f"-i {tmp_path}/ensemble.model -d {log}", "saved to predict only: load it with --testonly (-t)"),
        (
            f"{search} -f x --predict_only_ensemble --resume",
            "--predict_only_ensemble and --resume exclude each other",
        ),
        (f"{search} -f x --predict_only_ensemble --predict_only_model", "exclude each other"),
    ]:
        assert main(words.split()) == 2
        assert message in capsys.readouterr().err
