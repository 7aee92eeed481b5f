"""Blocks carry the rules that they were read by, and workspaces of other rules refuse them."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import onlineauto
from onlineauto import Block, InputError, Workspace
from onlineauto.interop import from_dicts

pytestmark = pytest.mark.lane("quick")

TEXT = b"shared |a x\n0:-1:0.5 |b y\n|b z\n\n"


def block_of(**options: Any) -> Block:
    (block,) = onlineauto.read(TEXT, **options)
    return block


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"hash_seed": 7}, "hash_seed = 0, but this workspace has hash_seed = 7"),
        ({"hash": "all"}, "hash = strings, but this workspace has hash = all"),
        ({"vw_exact": True}, "vw_exact = False, but this workspace has vw_exact = True"),
        ({"missing_probability": "uniform"}, "missing_probability = refuse"),
    ],
    ids=str,
)
def test_a_block_of_other_rules_is_refused_and_nothing_is_learnt(options: dict[str, Any], why: str) -> None:
    workspace = Workspace(cb_explore_adf=True, **options)
    block = block_of(cb_adf=True)
    for use in (workspace.learn_block, workspace.predict_block, lambda each: workspace.fit([each])):
        with pytest.raises(InputError, match=why):
            use(block)
    assert not workspace.learner.model.touched.any()
    assert workspace.layout.n_namespaces == 0


def test_a_block_of_events_of_another_kind_is_refused() -> None:
    with pytest.raises(InputError, match="events = cb_adf, but this workspace has events = simple"):
        Workspace().learn_block(block_of(cb_adf=True))


def test_events_of_another_kind_are_refused_where_a_block_does_not_say() -> None:
    [decisions] = from_dicts(
        [{"context": {"u": 1}, "actions": [{"a": 1}, {"a": 2}], "chosen": 0, "cost": 1, "probability": 0.5}]
    )
    [lines] = from_dicts([{"context": {"u": 1}, "label": 2.0}])
    for use in (Workspace().learn_block, Workspace().predict_block, Workspace().predictor().predict_block):
        with pytest.raises(InputError, match=r"events of a contextual bandit, .* use AutoML"):
            use(decisions)
        use(lines)
    bandit = Workspace(cb_explore_adf=True)
    for use in (bandit.learn_block, bandit.predict_block, bandit.predictor().predict_block):
        with pytest.raises(InputError, match=r"single lines with labels, .* use AutoMLRegressor"):
            use(lines)
        use(decisions)


def test_one_block_is_not_several() -> None:
    several: Any = from_dicts([{"context": {"u": 1}, "label": 2.0}])
    with pytest.raises(TypeError, match=r"one block is needed, and this is a generator: .* next"):
        Workspace().predict_block(several)


def test_a_predictor_refuses_blocks_of_other_rules() -> None:
    predictor = Workspace(cb_explore_adf=True, hash_seed=7).predictor()
    with pytest.raises(InputError, match="this block was read with hash_seed = 0"):
        predictor.predict_block(block_of(cb_adf=True))


def test_kinds_that_read_the_same_events_take_each_others_blocks() -> None:
    for kind in ("cb_adf", "cb_explore_adf"):
        for other in ("cb_adf", "cb_explore_adf"):
            options: dict[str, Any] = {kind: True}
            Workspace(**options).learn_block(block_of(**{other: True}))


def test_parts_and_copies_of_a_block_carry_its_rules() -> None:
    block = block_of(cb_adf=True, hash_seed=7)
    for each in (block.head(1), block.tail(0), pickle.loads(pickle.dumps(block))):  # noqa: S301 - its own
        assert each.rules == block.rules
        with pytest.raises(InputError, match="hash_seed = 7"):
            Workspace(cb_adf=True).learn_block(each)


def test_blocks_of_a_file_carry_the_rules_of_the_file(tmp_path: Path) -> None:
    onlineauto.convert(TEXT, tmp_path / "blocks", cb_adf=True, hash_seed=7)
    (block,) = onlineauto.read(tmp_path / "blocks", cb_adf=True, hash_seed=7)
    assert block.rules["hash_seed"] == 7
    with pytest.raises(InputError, match="this block was read with hash_seed = 7"):
        Workspace(cb_adf=True).predict_block(block)


def test_blocks_of_dicts_carry_how_their_names_were_hashed() -> None:
    events = [{"context": {"a": "x"}, "actions": [{"b": "y"}, {"b": "z"}]}]
    (block,) = from_dicts(events, hash_seed=7)
    Workspace(cb_explore_adf=True, hash_seed=7).learn_block(block)
    with pytest.raises(InputError, match="this block was read with hash_seed = 7"):
        Workspace(cb_explore_adf=True).learn_block(block)
