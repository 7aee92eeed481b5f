"""Models as text: layout, weights and names; ``tests/parity`` compares the bytes with VW."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.workspace.inspection.readable_model import readable_model, vw_command
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.predict_only import spun_off
from tests.learners.model_view import lanes_of
from tests.parity.streams import STREAMS
from tests.parity.vw import read_readable_model

BANDIT = STREAMS["bandit"](80, 1)


def lines_of(workspace: Workspace, **how: Any) -> list[str]:
    progress = ProgressTable(workspace.configuration, kind=workspace.kind)
    return list(readable_model(workspace, progress, **how))


@pytest.mark.parametrize(
    "options",
    [
        {"quadratic": ["::"]},
        {"cb_type": "dr", "bit_precision": 12},
        {"automl": 3},
        {"adaptive": True, "initial_t": 2.0, "bit_precision": 8},
        {"sgd": True, "bag": 3},
    ],
    ids=str,
)
def test_every_weight_is_there_bit_by_bit(options: dict[str, Any]) -> None:
    workspace = Workspace(cb_explore_adf=True, **options).fit(BANDIT)
    text = "".join(lines_of(workspace, hexfloat=True))
    assert text.startswith("Version onlineauto ")
    found = read_readable_model(text.replace("options: --", "options "))[1]
    kept = [
        0,
        *([1] if workspace.learner.rule.adaptive else []),
        *([2] if workspace.learner.rule.normalized else []),
    ]
    flat = workspace.weights.transpose(0, 2, 1).reshape(-1, 4)[:, kept]
    expected = np.flatnonzero((flat != 0).any(axis=1))
    np.testing.assert_array_equal(found.index, expected)
    np.testing.assert_array_equal(found.values, flat[expected])


def test_penalties_are_in_the_weights_that_only_predict() -> None:
    workspace = Workspace(l1=0.01).fit(STREAMS["numbers"](50, 1))
    penalty = np.float32(lanes_of(workspace).gravity[0])
    assert penalty > 0
    written = [line.strip().split(":") for line in lines_of(workspace, weights_only=True)]
    begin = next(i for i, words in enumerate(written) if words == ["", "0"]) + 1
    weights = workspace.weights[:, 0, 0]
    alive = np.flatnonzero(np.abs(weights) > penalty)
    assert [int(words[0]) for words in written[begin:]] == alive.tolist()
    for words in written[begin:]:
        weight = weights[int(words[0])]
        assert float(words[1]) == pytest.approx(np.copysign(abs(weight) - penalty, weight), rel=1e-4)


def test_names_stand_before_the_weights_that_are_not_zero() -> None:
    workspace = Workspace().fit(b"1 |a x y\n")
    numbers = [
        int(line.split(":")[0])
        for line in lines_of(workspace)
        if line[0].isdigit() and "ngram" not in line and "skip" not in line
    ]
    named = lines_of(workspace, names={numbers[0]: "a^x"})
    assert [line for line in named if line.startswith("a^x:")] == [
        f"a^x:{line}" for line in lines_of(workspace) if line.startswith(f"{numbers[0]}:")
    ]


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "native"])
def test_a_champion_alone_predicts_the_same(exact: bool) -> None:
    options: dict[str, Any] = {} if exact else {"predict_with": "champion"}
    workspace = Workspace(cb_explore_adf=True, automl=4, default_lease=10, vw_exact=exact, **options).fit(
        BANDIT
    )
    alone = spun_off(workspace)
    event = BANDIT.decode().split("\n\n")[3] + "\n"
    np.testing.assert_array_equal(alone.predict(event), workspace.predict(event))
    assert ("automl" in alone.configuration.supplied) is not exact


def test_vw_command_contains_the_options_that_vw_keeps() -> None:
    flags = "--cb_explore 3 -l 0.1 --sgd --loss_function logistic --l2 1 --ignore ba --ignore c --noconstant"
    configuration = REGISTRY.parse(flags)
    bandit = " --cb_adf --cb_explore 3 --cb_explore_adf --cb_type mtr --csoaa_ldf multiline --csoaa_rank"
    assert vw_command(configuration, seed=3, resumes=True) == (
        f"{bandit} --learning_rate 0.100000001490116 --noconstant --sgd --ignore abc --random_seed 3"
    )
    assert vw_command(configuration, seed=0, resumes=False) == f"{bandit} --noconstant --ignore abc"
