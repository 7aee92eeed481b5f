"""``--epsilon_decay`` under ``--automl`` in native mode: every live config has its own models."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.records.task import DecayTally
from onlineauto.engine.search import live_configs as live_slots
from onlineauto.engine.search.journal import Entry
from onlineauto.engine.search.lanes import put_back
from onlineauto.estimators.robust_kernels import LOWER, T
from onlineauto.learners.model import read_cells
from onlineauto.workspace.inspection.inspection import inspection
from tests.engine.test_searching import stream

_DECAY: dict[str, Any] = {
    "cb_explore_adf": True,
    "epsilon_decay": True,
    "min_scope": 10,
    "bonferroni_denominator": 1,
    "epsilon_decay_significance_level": 1.9,
}
_SEARCH: dict[str, Any] = {**_DECAY, "automl": 3, "default_lease": 16, "automl_significance_level": 0.9}
_EVENTS = stream(600)


def _searched(**options: Any) -> tuple[Workspace, list[Entry]]:
    decisions: list[Entry] = []
    workspace = Workspace(**_SEARCH, **options)
    workspace.observe(decisions.append)
    return workspace.fit(_EVENTS), decisions


@pytest.mark.parametrize("cb_type", ["mtr", "dr"])
def test_single_live_config_decays_as_without_a_search(cb_type: str) -> None:
    alone = Workspace(**_DECAY, automl=1, cb_type=cb_type)
    crossed = [["User", "Action"], ["Time", "Action"]]
    names = ["|".join(each) for each in crossed]
    twin = Workspace(**_DECAY, cb_type=cb_type, experimental_full_name_interactions=names)
    for event in _EVENTS[:300]:
        np.testing.assert_allclose(alone.learn(event), twin.learn(event), atol=1e-5)
    mine, other = (each.learner.task.decay for each in (alone, twin))
    assert mine.tally.tolist() == other.tally.tolist()
    assert mine.place.tolist() == other.place.tolist()
    assert mine.tally[DecayTally.PROMOTED] > 0
    assert mine.tally[DecayTally.DROPPED] > 0


def test_model_is_reset_in_all_live_configs_at_once() -> None:
    workspace = Workspace(**_SEARCH | {"default_lease": 10_000, "noconstant": True})
    model, decay, live = workspace.learner.model, workspace.learner.task.decay, 3
    times = 0
    for event in _EVENTS[:200]:
        workspace.learn(event)
        for number in range(len(decay.place)):
            lanes = [int(decay.place[number]) * live + slot for slot in range(live)]
            begun = bool(decay.evidence[number, number, LOWER, T])
            assert begun or not read_cells(model, lanes=lanes, fields=3).any()
            assert (model.sums[:, 2 * decay.place[number]] != 0).tolist() == [begun] * live
            times += not begun
    assert times > 10


def test_tests_of_the_search_count_each_event_once() -> None:
    workspace, _ = _searched()
    assert workspace.searching.n_learnt == len(_EVENTS)
    assert workspace.searching.n_switches > 0


@pytest.mark.parametrize(
    "options", [{}, {"cb_type": "dr"}, {"oracle_type": "one_diff"}, {"estimator": "robust"}], ids=str
)
def test_models_of_a_waiting_config_that_were_reset_are_those_of_the_champion(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def put(parked: Any, model: Any, slot: int, *, lanes: Any, same: Any, unlearnt: Any) -> None:
        put_back(parked, model, slot, lanes=lanes, same=same, unlearnt=unlearnt)
        kept = np.repeat(same, len(lanes) // len(same))
        for part, lane in enumerate(lanes):
            champion = part * 3
            cells = read_cells(model)
            there = np.zeros_like(cells[..., 0])
            there[parked.cells] = parked.weights[..., part]
            expected = there if kept[part] else cells[..., champion]
            np.testing.assert_array_equal(cells[..., lane], expected)
        compared.append((int(same.sum()), len(same)))

    monkeypatch.setattr(live_slots, "put_back", put)
    _searched(**options)
    assert compared
    assert any(same < models for same, models in compared)


def test_journal_is_replayed_and_saved_champion_predicts_the_same(tmp_path: Any) -> None:
    from onlineauto.cli.main import main

    (tmp_path / "events.txt").write_text("".join(_EVENTS))
    words = [f"--{name}" if value is True else f"--{name}={value}" for name, value in _SEARCH.items()]
    words += ["-d", str(tmp_path / "events.txt"), "--quiet"]
    one, other, journal = (str(tmp_path / name) for name in ("one", "other", "journal"))
    assert not main([*words, "--journal", journal, "-f", one])
    assert not main([*words, "--replay", journal, "-p", other])
    assert not main([*words, "-p", one + ".p"])
    assert (tmp_path / "other").read_text() == (tmp_path / "one.p").read_text()
    workspace, file = Workspace.load(one), io.BytesIO()
    workspace.save(file, predict_only=True)
    alone = Workspace.load(file.getvalue(), testonly=True)
    assert alone.predict(_EVENTS[0]).tolist() == workspace.predict(_EVENTS[0]).tolist()


def test_inspection_shows_weights_of_the_champion() -> None:
    workspace, _ = _searched()
    lane, model = workspace.learner.champion_lane(), workspace.learner.model
    assert lane == int(workspace.learner.task.decay.place[-1]) * 3
    shown = inspection(workspace, names={}, top=1)["top_weights"][0]
    assert shown["number"] % workspace.weights.shape[2] == lane
    assert abs(shown["weight"]) == np.abs(model.weights[:, lane]).max()
