"""Members of the ensemble within a budget: what is journalled, replayed, saved and shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.ensemble.ensemble import able_scores, ensemble_state, rest, worths
from onlineauto.engine.ensemble.states import constant_of, states_of
from onlineauto.engine.search.journal import Journal
from onlineauto.workspace.inspection.inspection import inspection
from tests.engine.ensemble_streams import odd

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 2, "default_lease": 60, "member_budget": 2.0}


def learnt(n: int, **more: Any) -> tuple[Workspace, list[dict[str, Any]]]:
    workspace, journal = Workspace(**OPTIONS, **more), []
    workspace.observe(lambda entry: journal.append(msgspec.to_builtins(entry)))
    return workspace.fit(odd(n, numbers=2)), journal


def rests(workspace: Workspace) -> list[bool]:
    found: list[bool] = workspace.searching.live_configs.arrays.ensemble.members.rests.tolist()
    return found


def test_the_journal_names_inactive_members_and_the_reason() -> None:
    workspace, journal = learnt(300)
    entries = [line for line in journal if line["decision"] == "rest_members"]
    assert entries
    last = entries[-1]
    working = last["prices"].keys() - set(last["members"])
    assert working == last["worths"].keys()
    assert sum(last["prices"][name] for name in working) <= OPTIONS["member_budget"]
    shown = {each["who"]: each for each in inspection(workspace, names={})["ensemble"]}
    assert [name for name, each in shown.items() if each.get("rests")] == last["members"]
    assert all(shown[name]["weight"] is None for name in last["members"])


def test_a_replay_lets_the_same_members_rest(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    first = Workspace(**OPTIONS)
    with path.open("wb") as file:
        journal = Journal(file, command=first.configuration.command(kept=True))
        first.observe(journal.append)
        first.fit(odd(300, numbers=2))
        journal.end(events=300)
    again = Workspace(**OPTIONS, replay=str(path))
    again.fit(odd(300, numbers=2))
    assert rests(again) == rests(first)
    assert any(rests(again))


def test_inactive_members_are_saved(tmp_path: Path) -> None:
    text = odd(400, numbers=2)
    events = text.split(b"\n\n")[:-1]
    whole, half = Workspace(**OPTIONS), Workspace(**OPTIONS)
    for event in events[:250]:
        half.learn(event + b"\n\n")
    half.save(tmp_path / "model")
    other = Workspace.load(tmp_path / "model")
    assert any(rests(other))
    assert rests(other) == rests(half)
    for event in events[250:]:
        np.testing.assert_array_equal(other.learn(event + b"\n\n"), half.learn(event + b"\n\n"))
    whole.fit(text)
    assert rests(whole) == rests(other)


def test_the_ensemble_predicts_while_all_members_are_inactive() -> None:
    workspace = Workspace(**{**OPTIONS, "member_budget": 0.01}).fit(odd(700, numbers=2))
    ensemble = workspace.searching.live_configs.arrays.ensemble
    resting = np.array(rests(workspace))
    assert resting.tolist() == [name != "vectors" for name in NAMES]  # there is no vector
    constant = constant_of(ensemble)
    assert not ensemble.weights[constant - len(NAMES) : constant][resting].any()
    assert not ensemble.weights[-len(NAMES) :][resting].any()
    assert ensemble.weights[0] != 1.0


NAMES = (
    "features",
    "waves",
    "crosses one by one",
    "crosses in pairs",
    "crosses in triples",
    "layer",
    "baseline",
    "ridge",
    "means",
    "vectors",
    "trees",
)


@pytest.mark.parametrize("name", NAMES)
def test_the_covariance_stays_symmetric_to_the_last_bit_when_a_member_rests(name: str) -> None:
    workspace, _ = learnt(150)
    ensemble = workspace.searching.live_configs.arrays.ensemble
    rest(ensemble, [])
    draw = np.random.default_rng(0).normal(size=(2 * len(ensemble.weights), len(ensemble.weights)))
    ensemble.spread[:] = draw.T @ draw
    assert np.array_equal(ensemble.spread, ensemble.spread.T)
    rest(ensemble, [name])
    assert np.array_equal(ensemble.spread, ensemble.spread.T)
    assert np.linalg.eigvalsh(ensemble.spread)[0] > 0.0


def test_features_keep_their_seat_while_the_layer_upon_them_works() -> None:
    workspace = Workspace(**{**OPTIONS, "member_budget": 100.0}).fit(odd(1300, numbers=2))
    ensemble = workspace.searching.live_configs.arrays.ensemble
    found = worths(ensemble, ())
    assert found["features"] >= found["layer"] > 0
    assert worths(ensemble, {"features"}).keys().isdisjoint({"features", "layer"})
    rest(ensemble, {"features"})
    assert ensemble.members.rests.tolist() == [name in ("features", "layer") for name in NAMES]
    of = {name: at for at, name in enumerate(NAMES, constant_of(ensemble) - len(NAMES))}
    for at in (of["features"], of["layer"]):
        assert ensemble.weights[[at, at + ensemble.n_levels + 1]].tolist() == [0.0, 0.0]
    assert able_scores(ensemble)["layer"]
    shown = {each["who"]: each for each in inspection(workspace, names={})["ensemble"]}
    assert shown["features"]["rests"]
    assert shown["layer"]["rests"]


def test_a_stream_with_a_layer_goes_on_as_if_it_was_not_interrupted(tmp_path: Path) -> None:
    options = {**OPTIONS, "member_budget": 100.0}
    events = odd(1300, numbers=2).split(b"\n\n")[:-1]
    whole, half = Workspace(**options), Workspace(**options)
    for event in events[:1150]:
        half.learn(event + b"\n\n")
        whole.learn(event + b"\n\n")
    half.save(tmp_path / "model")
    half.save(tmp_path / "small", predict_only="ensemble")
    again, small = Workspace.load(tmp_path / "model"), Workspace.load(tmp_path / "small", testonly=True)
    assert states_of(again.searching.live_configs.arrays.ensemble).state_of("layer").regression.weights.any()
    asked = odd(1, numbers=2)
    np.testing.assert_array_equal(small.predict(asked), whole.predict(asked))
    for event in events[1150:]:
        np.testing.assert_array_equal(again.learn(event + b"\n\n"), whole.learn(event + b"\n\n"))
    again.save(tmp_path / "again")
    whole.save(tmp_path / "whole")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "whole").read_bytes()


def test_events_that_were_learnt_are_not_saved_as_waiting() -> None:
    """Else the bytes of a model would depend on when it was saved before."""
    workspace, _ = learnt(700)
    ensemble = workspace.searching.live_configs.arrays.ensemble
    features = states_of(ensemble).state_of("features").regression
    assert features.waiting.any()
    counts = features.n_waiting
    for all_wait in (2, 3):
        counts[0], counts[1:] = all_wait, 0
        saved = ensemble_state(ensemble, tests=1)["members"]["features"]
        assert saved["waiting"].shape[1] == all_wait
        assert saved["waiting"][0].any()
        assert not saved["waiting"][1:].any()
        assert not saved["observed"][1:].any()
