"""Damaged models with an ensemble are refused by name; `--predict_with` may change; what excludes it."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import InputError, OptionError, Workspace
from onlineauto.cli.main import main
from onlineauto.engine.report.search_summary import search_summary
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.model_file import decode_tree, encode_tree
from tests.engine.ensemble_streams import bent, odd

BANDIT: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "default_lease": 60, "bit_precision": 10}


@cache
def text() -> bytes:
    return odd(1000, numbers=2)


@cache
def model() -> bytes:
    file = io.BytesIO()
    Workspace(**BANDIT).fit(text()).save(file)
    return file.getvalue()


def forged(place: str, change: Callable[[Any], object]) -> bytes:
    tree = decode_tree(model(), name="the model")
    *path, last = place.split(".")
    part = tree["model"]["search"]["slots"]["ensemble"]
    for name in path:
        part = part[name]
    value = part[last]
    part[last] = change(value.copy() if isinstance(value, np.ndarray) else value)
    return b"".join(map(bytes, encode_tree(tree)))


def put(number: float, at: int = 0) -> Callable[[Any], object]:
    def change(array: Any) -> object:
        array.ravel()[at] = number
        return array

    return change


NAN, HUGE = put(float("nan")), put(float("inf"))
LONGER = partial(np.pad, pad_width=(0, 1))
FORGERIES: list[tuple[str, Callable[[Any], object]]] = [
    *((name, NAN) for name in ("weights", "spread", "range", "costs")),
    *((name, HUGE) for name in ("weights", "spread", "range", "costs")),
    *((name, NAN) for name in ("inputs.mean", "inputs.variance", "inputs.cut")),
    *((name, NAN) for name in ("inputs.latest", "members.layer.measure")),
    *((f"members.{name}.{part}", NAN) for name in ("features", "waves") for part in ("weights", "spread")),
    ("spread", put(0.0)),
    ("spread", put(0.5, 1)),
    *((name, LONGER) for name in ("weights", "spread", "range", "pair", "loss")),
    *((name, lambda array: array[:-1]) for name in ("loss_spread", "policies", "level", "updates", "costs")),
    *((name, lambda array: array.astype(np.float32)) for name in ("weights", "spread", "pair")),
    ("updates", put(-1)),
    ("serves", lambda _: 1),
    ("tests", lambda _: -1),
    ("tests", lambda _: 1.5),
    ("level", NAN),
    ("level", put(3.0)),
    *((f"inputs.{name}", put(-3)) for name in ("tally", "input", "number", "of_number", "bins", "of_bin")),
    *((f"inputs.{name}", put(302)) for name in ("tally", "input", "number", "of_number", "bins", "of_bin")),
    ("inputs.number", put(64)),
    ("inputs.bins", put(25)),
    ("inputs.seen", put(-1)),
    ("inputs.feature", lambda array: array + np.uint64(1)),
    ("inputs.feature", lambda array: array[:-24]),
    ("inputs.action", lambda array: array.astype(np.int64)),
    ("members.features.weights", lambda array: np.zeros((33, array.shape[1]))),
    ("members.features.weights", lambda array: np.zeros((len(array), 301))),
    ("members.features.spread", lambda array: array[:, :-1]),
    ("members.waves.weights", lambda array: array[0]),
    *((f"inputs.{name}", put(24)) for name in ("part", "group")),
    *((f"members.crosses.{name}", NAN) for name in ("weights", "spread", "mean")),
    ("members.crosses.spread", put(1.5)),
    ("members.crosses.cells", lambda _: np.array([1 << 18], np.uint32)),
    ("members.crosses.cells", lambda _: np.array([1, 0], np.uint32)),
    ("members.crosses.cells", lambda array: array.astype(np.float64)),
    ("members.crosses.weights", lambda array: array[:-1]),
    ("members.crosses.spread", lambda array: array[:, :2].copy()),
    ("members", lambda _: None),
    ("members.features", lambda _: []),
]


@pytest.mark.parametrize(("place", "change"), FORGERIES)
def test_error_names_the_damaged_part_of_an_ensemble(place: str, change: Callable[[Any], object]) -> None:
    with pytest.raises(InputError, match=f"ensemble.{place}".replace(".", r"\.")):
        Workspace.load(forged(place, change))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cells", np.array([1 << 10], np.uint32)),
        ("cells", np.array([1, 0], np.uint32)),
        ("cells", np.zeros(1, np.int64)),
        ("cells", np.zeros(1, np.uint8)),
        ("table", np.zeros((1, 3), np.float32)),
    ],
)
def test_error_names_the_damaged_table_of_screening(name: str, value: object) -> None:
    tree = decode_tree(model(), name="the model")
    screening = tree["model"]["search"]["screening"]
    assert 1 < len(screening["table"]) < 1 << 10
    screening[name] = value
    with pytest.raises(InputError, match=rf"screening\.({name}|table)"):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))))


@pytest.mark.parametrize("name", ["weights", "members", "level", "tests", "serves"])
def test_a_missing_part_of_an_ensemble_is_named(name: str) -> None:
    tree = decode_tree(model(), name="the model")
    del tree["model"]["search"]["slots"]["ensemble"][name]
    with pytest.raises(InputError, match=f"ensemble.{name} is missing"):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))))


def test_undamaged_files_are_loaded() -> None:
    loaded = Workspace.load(forged("tests", lambda tests: tests))
    assert loaded.searching.live_configs.arrays.ensemble.serves


# -- what predicts may change when a model is loaded ---------------------------------------------------


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


@pytest.mark.parametrize(
    ("options", "stream"),
    [(BANDIT, text), ({"automl": 3, "bit_precision": 10, "predict_with": "ensemble"}, lambda: bent(700))],
    ids=["bandit", "lines"],
)
def test_a_model_of_the_ensemble_may_go_on_with_the_champion_and_come_back(
    options: dict[str, Any], stream: Callable[[], bytes]
) -> None:
    first, second = Workspace(**options).fit(stream()), io.BytesIO()
    assert ensemble_of(first).serves
    first.save(second)
    champion = Workspace.load(second.getvalue(), predict_with="champion")
    assert not ensemble_of(champion).on
    alone = first.fork(predict_with="champion")
    champion.fit(stream())
    assert alone.fit(stream()).weights.tobytes() == champion.weights.tobytes()
    third = io.BytesIO()
    champion.save(third)
    again = Workspace.load(third.getvalue(), predict_with="ensemble")
    assert ensemble_of(again).on
    assert not ensemble_of(again).serves
    weights = ensemble_of(again).weights
    assert (weights[0], weights.sum()) == (0.5 if options is BANDIT else 1.0, 1.0)
    assert ensemble_of(again.fit(stream())).serves


def test_a_model_to_predict_with_has_the_champion_alone() -> None:
    whole, file = Workspace.load(model()), io.BytesIO()
    whole.save(file, predict_only=True)
    event = text().decode().split("\n\n")[0] + "\n"
    champion = whole.fork(predict_with="champion").predict(event)
    assert Workspace.load(file.getvalue(), testonly=True).predict(event).tobytes() == champion.tobytes()


# -- options -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"estimator": "robust"}, "--estimator robust"),
        ({"cb_type": "ips"}, "--cb_type ips"),
        ({"cb_type": "dr"}, "--cb_type dr"),
        ({"l1": 1e-6}, "--l1 or --l2"),
        ({"l2": 1e-6}, "--l1 or --l2"),
        ({"search": "interactions,l1"}, "--search of cb_type, l1 or l2"),
        ({"search": "cb_type"}, "--search of cb_type, l1 or l2"),
        ({"bag": 3}, "--bag"),
        ({"cover": 3}, "--cover"),
        ({"regcb": True}, "--regcb"),
        ({"epsilon_decay": True}, "--epsilon_decay"),
    ],
)
def test_error_names_options_that_exclude_an_ensemble(more: dict[str, Any], named: str) -> None:
    options = {"cb_explore_adf": True, "automl": 3, **more}
    with pytest.raises(OptionError, match=named):
        Workspace(**options, predict_with="ensemble")
    assert not ensemble_of(Workspace(**options)).on


def test_single_lines_of_another_loss_have_no_ensemble() -> None:
    with pytest.raises(OptionError, match="a --loss_function other than squared exclude each other"):
        Workspace(automl=3, loss_function="logistic", predict_with="ensemble")


def test_what_predicts_by_itself() -> None:
    assert ensemble_of(Workspace(cb_explore_adf=True, automl=3)).on
    assert ensemble_of(Workspace(cb_explore=4, automl=3)).on
    assert not ensemble_of(Workspace(cb_explore_adf=True, automl=3, predict_with="champion")).on
    assert not ensemble_of(Workspace(cb_explore_adf=True)).on
    assert not ensemble_of(Workspace(cb_explore_adf=True, predict_with="ensemble")).on
    assert ensemble_of(Workspace(automl=3)).on
    for lines in (Workspace(automl=3, predict_with="mix"), Workspace(automl=3, loss_function="logistic")):
        assert not ensemble_of(lines).on
        assert lines.searching.live_configs.arrays.mixing


# -- what is said --------------------------------------------------------------------------------------


def test_description_names_the_predictor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    workspace, since = Workspace(**BANDIT), []
    assert inspection(workspace, names={})["predicted_by"] == {"who": "champion", "since": 0}
    assert "predicted by = the champion" in search_summary(workspace.searching)
    workspace.observe(lambda entry: since.append(entry.events) if hasattr(entry, "who") else None)
    workspace.fit(text()).save(tmp_path / "its.model")
    for each in (workspace, Workspace.load(tmp_path / "its.model"), workspace.fork()):
        assert f"predicted by = the ensemble since event {since[-1]}" in search_summary(each.searching)
        assert inspection(each, names={})["predicted_by"] == {"who": "ensemble", "since": since[-1]}
    assert main(["inspect", str(tmp_path / "its.model")]) == 0
    assert f"predicted by  the ensemble since event {since[-1]}\n" in capsys.readouterr().out
    alone = workspace.fork(predict_with="champion")
    assert inspection(alone, names={})["predicted_by"] == {"who": "champion", "since": 0}
    assert not any(line.startswith("predicted") for line in search_summary(alone.searching))


def test_inspect_displays_the_weights_of_the_ensemble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(**BANDIT).fit(text())
    shares = inspection(workspace, names={})["ensemble"]
    live = [f"live config {index}" for index in range(len(workspace.estimates))]
    crosses = [f"crosses {how}" for how in ("one by one", "in pairs", "in triples")]
    others = (
        "features",
        "waves",
        *crosses,
        "layer",
        "baseline",
        "ridge",
        "means",
        "vectors",
        "trees",
        "constant",
    )
    assert [each["who"] for each in shares] == [*live, *others]
    pairs = shares[len(live) + others.index("crosses in pairs")]
    weights = ensemble_of(workspace).weights[: -ensemble_of(workspace).n_levels]
    assert [each["weight"] or 0.0 for each in shares[len(live) :]] == weights[-len(others) :].tolist()
    workspace.save(tmp_path / "its.model")
    assert main(["inspect", str(tmp_path / "its.model")]) == 0
    printed = capsys.readouterr().out
    assert re.search(rf"crosses in pairs +{pairs['weight']:.3f} +{pairs['price']:.2f}\n", printed)
    words = Workspace(**BANDIT | {"members": "waves"}).fit(b"shared |a x\n0:0:0.5 |b y\n|b z\n\n")
    assert [each["weight"] for each in inspection(words, names={})["ensemble"][-2:-1]] == [None]
    assert inspection(workspace.fork(predict_with="champion"), names={})["ensemble"] == []


def test_description_names_a_mixture_or_no_predictor_without_a_search() -> None:
    assert inspection(Workspace(automl=3), names={})["predicted_by"] == {"who": "mix", "since": 0}
    assert inspection(Workspace(cb_explore_adf=True), names={})["predicted_by"] is None
