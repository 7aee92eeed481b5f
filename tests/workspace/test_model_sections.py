"""Sections of a model file have versions: a member that cannot be read starts cold, and the rest is kept."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from onlineauto import InputError, Workspace
from onlineauto.engine.ensemble.ensemble import VERSION
from onlineauto.engine.ensemble.inputs import INPUTS_VERSION
from onlineauto.engine.ensemble.shrinkage_kernels import find_factors
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.model_file import decode_tree, encode_tree
from tests.engine.ensemble_streams import odd

_factors: Any = vars(find_factors)["py_func"]
BANDIT: dict[str, Any] = {"cb_explore_adf": True, "automl": 3, "default_lease": 60, "bit_precision": 10}
SCORES = (
    *("features", "waves", "crosses one by one", "crosses in pairs", "crosses in triples", "layer"),
    "baseline",
    "ridge",
    "means",
    "vectors",
    "trees",
)


@cache
def text() -> bytes:
    return odd(1600, numbers=2)


def events() -> list[str]:
    return [f"{event}\n\n" for event in text().decode().strip().split("\n\n")]


@cache
def model(*, predict_only: bool = False) -> bytes:
    file, workspace = io.BytesIO(), Workspace(**BANDIT)
    for event in events()[:1200]:
        workspace.learn(event)
    workspace.save(file, predict_only="ensemble" if predict_only else False)
    return file.getvalue()


def changed(change: Callable[[dict[str, Any]], None], *, predict_only: bool = False) -> bytes:
    """Return the file after a change of its ensemble."""
    tree = decode_tree(model(predict_only=predict_only), name="the model")
    change(tree["model"]["search"]["slots"]["ensemble"])
    return b"".join(map(bytes, encode_tree(tree)))


def ensemble_of(workspace: Workspace) -> Any:
    return workspace.searching.live_configs.arrays.ensemble


def weights_of(workspace: Workspace) -> dict[str, float]:
    return {each["who"]: each["weight"] for each in inspection(workspace, names={})["ensemble"]}


def error_of(workspace: Workspace) -> float:
    """Return the mean cost of what is chosen in the rest of the log."""
    costs = []
    for event in events()[1200:]:
        chosen = int(np.argmax(workspace.learn(event)))
        shown = next(at for at, line in enumerate(event.splitlines()[1:]) if ":" in line.split("|")[0])
        if chosen == shown:
            costs.append(float(event.splitlines()[1 + shown].split(":")[1]))
    return float(np.mean(costs))


@pytest.mark.parametrize("name", sorted({score.split()[0] for score in SCORES}))
def test_a_member_of_an_unknown_version_starts_cold_and_all_else_is_kept(name: str) -> None:
    def change(ensemble: dict[str, Any]) -> None:
        ensemble["members"][name] = {"version": 7, "something": "else"}

    whole = Workspace.load(model())
    with pytest.warns(UserWarning, match=f"members {name} are of a version") as warned:
        found = Workspace.load(changed(change))
    assert len(warned) == 1
    expected, actual = weights_of(whole), weights_of(found)
    cold = [score for score in SCORES if score.split()[0] == name]
    assert [actual[score] or 0.0 for score in cold] == [0.0] * len(cold)
    assert actual.keys() == expected.keys()
    assert found.searching.search == whole.searching.search
    assert found.searching.predicts == whole.searching.predicts
    np.testing.assert_array_equal(ensemble_of(found).test.loss, ensemble_of(whole).test.loss)
    np.testing.assert_array_equal(ensemble_of(found).test.pair, ensemble_of(whole).test.pair)
    assert found.weights.tobytes() == whole.weights.tobytes()
    assert abs(error_of(found) - error_of(whole)) < 0.05
    if name == "trees":  # it has no score before its first fit
        found.fit("".join(events()).encode())
    if name != "vectors":  # the stream has none
        assert weights_of(found)[cold[0]] != 0.0  # it has learnt and has a weight again


def test_inputs_of_an_unknown_version_let_all_members_start_cold() -> None:
    def change(ensemble: dict[str, Any]) -> None:
        ensemble["inputs"]["version"] = INPUTS_VERSION + 1

    with pytest.warns(
        UserWarning, match="features, waves, crosses, layer, baseline, ridge, means, vectors, trees"
    ):
        found = Workspace.load(changed(change))
    assert [weights_of(found)[score] or 0.0 for score in SCORES] == [0.0] * len(SCORES)
    found.fit(text())
    assert weights_of(found)["features"] != 0.0


def test_a_member_that_was_not_stored_is_new_and_one_that_is_not_there_is_left_out() -> None:
    def change(ensemble: dict[str, Any]) -> None:
        at = 3 + SCORES.index("layer")
        ensemble["scores"][SCORES.index("layer")] = "a member that was removed"
        del ensemble["members"]["layer"]
        assert ensemble["weights"][at] != 0.0

    found = Workspace.load(changed(change))
    assert weights_of(found)["layer"] == 0.0
    spread = ensemble_of(found).spread
    assert np.array_equal(spread, spread.T)
    assert np.linalg.eigvalsh(spread)[0] > 0.0
    found.fit(text())


def test_an_ensemble_of_version_1_has_no_means_and_predicts_the_same() -> None:
    def change(ensemble: dict[str, Any]) -> None:
        ensemble["version"] = 1
        del ensemble["shrinkage"], ensemble["members"]["means"]
        ensemble["scores"][SCORES.index("means")] = "a member that was not there"

    found = Workspace.load(changed(change))
    assert _factors(ensemble_of(found).shrinkage) == pytest.approx((1.0, 0.0))
    assert abs(error_of(found) - error_of(Workspace.load(model()))) < 0.05


def test_a_model_that_only_predicts_names_a_member_that_cannot_be_read() -> None:
    def change(ensemble: dict[str, Any]) -> None:
        ensemble["members"]["waves"]["version"] = 3

    with pytest.raises(InputError, match=r"its member waves is of a version .* cannot learn"):
        Workspace.load(changed(change, predict_only=True), testonly=True)


def test_a_later_version_is_an_error_that_names_the_section() -> None:
    def change(ensemble: dict[str, Any]) -> None:
        ensemble["version"] = VERSION + 1

    expected = rf"ensemble\.version is {VERSION + 1}, and not at most {VERSION}: load the model with a later"
    with pytest.raises(InputError, match=expected):
        Workspace.load(changed(change))
    tree = decode_tree(model(), name="the model")
    tree["versions"]["layout"] = 2
    with pytest.raises(InputError, match=r"written by a later onlineauto: .* section layout"):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))))
    tree["versions"]["layout"] = "2"
    with pytest.raises(InputError, match="the model is not a valid model: versions"):
        Workspace.load(b"".join(map(bytes, encode_tree(tree))))
