"""The member trees: on a stream with thresholds, and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bench.context_effect import earned
from onlineauto import Workspace
from onlineauto.engine.ensemble.registry import DEFAULT
from onlineauto.engine.ensemble.states import states_of
from onlineauto.learners.tree_records import FIRST_OF_COSTS, ROUNDS_OF_COSTS, Grown
from tests.engine.ensemble_streams import odd

OPTIONS: dict[str, Any] = {"cb_explore_adf": True, "automl": 2, "default_lease": 60, "bit_precision": 10}


def trees_of(workspace: Workspace) -> Any:
    return states_of(workspace.searching.live_configs.arrays.ensemble).state_of("trees").trees


def steps(n: int) -> tuple[bytes, NDArray[np.float64]]:
    """Return events whose best action depends on thresholds of three numbers at once."""
    draw = np.random.default_rng(2)
    x, logged = draw.normal(size=(n, 4)), draw.integers(3, size=n)
    best = ((x[:, 0] > 0.3).astype(int) + 2 * ((x[:, 1] > 0.0) ^ (x[:, 2] > 0.5))) % 3
    rewards = np.where(np.arange(3) == best[:, None], 0.9, 0.1)
    paid = draw.random(n) < rewards[np.arange(n), logged]
    text = []
    for event in range(n):
        context = " ".join(f"|{letter} v:{x[event, at]:.3f}" for at, letter in enumerate("abcd"))
        lines = [
            f"{f'0:{-int(paid[event])}:0.3333 ' if k == logged[event] else ''}|z z{k}\n" for k in range(3)
        ]
        text.append(f"shared {context}\n{''.join(lines)}\n")
    return "".join(text).encode(), rewards


def test_thresholds_of_several_numbers_are_learnt() -> None:
    text, rewards = steps(3000)
    others = ",".join(name for name in DEFAULT.split(",") if name not in {"trees", "logistic"})
    with_trees, without = (
        earned({"automl": 2, "members": names}, text, rewards) for names in (DEFAULT, others)
    )
    assert with_trees > without + 0.01


@pytest.mark.parametrize(
    "saved", [FIRST_OF_COSTS - 10, FIRST_OF_COSTS + 10, FIRST_OF_COSTS + ROUNDS_OF_COSTS]
)
def test_model_saved_while_trees_grow_continues_the_same(saved: int, tmp_path: Path) -> None:
    events = odd(700, numbers=2).split(b"\n\n")[:-1]
    whole = Workspace(**OPTIONS)
    for event in events[:saved]:
        whole.learn(event + b"\n\n")
    grown = trees_of(whole).tally[Grown.TREES]
    assert (grown > 0) == (FIRST_OF_COSTS <= saved < FIRST_OF_COSTS + ROUNDS_OF_COSTS - 1)
    whole.save(tmp_path / "half")
    loaded = Workspace.load(tmp_path / "half")
    for event in events[saved:]:
        whole.learn(event + b"\n\n")
        loaded.learn(event + b"\n\n")
    assert trees_of(whole).outputs.any()
    whole.save(tmp_path / "one")
    loaded.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_trees_begin_again_after_a_drift() -> None:
    draw = np.random.default_rng(0)
    x, rows = draw.normal(size=(6000, 2)), []
    for n, (first, second) in enumerate(x):
        label = np.sign(first) + np.sign(second - 0.5)
        rows.append(f"{label if n < 4000 else 3 - 2 * label:.1f} |n x:{first:.3f} y:{second:.3f}\n")
    workspace = Workspace(automl=2).fit("".join(rows).encode())
    assert workspace.searching.n_alarms == 1
    assert FIRST_OF_COSTS < trees_of(workspace).tally[Grown.EVENTS] < 2000 + FIRST_OF_COSTS


def test_single_lines_have_trees() -> None:
    draw = np.random.default_rng(0)
    lines = [
        f"{float(x > 0) + float(y > 0.5) * (x < 1):.3f} |n x:{x:.3f} y:{y:.3f}\n"
        for x, y in draw.normal(size=(700, 2))
    ]
    workspace = Workspace(automl=2, default_lease=60, bit_precision=10).fit("".join(lines).encode())
    trees = trees_of(workspace)
    assert trees.outputs[trees.tally[Grown.MODEL]] == 1
    assert np.ptp(trees.leaf[trees.tally[Grown.MODEL]]) > 0.1
