"""Streams with widely varying numbers, or a new scale, are learnt but for a few events."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from onlineauto import Workspace
from tests.engine.poisoned_streams import bandit_event

N = 6000


def learnt(lines: Iterator[str], **options: object) -> tuple[Workspace, NDArray[np.float32]]:
    """Return a workspace that has learnt single lines, and what it predicted for each."""
    workspace = Workspace(**options)  # type: ignore[arg-type]
    text = "".join(lines).encode()
    return workspace, np.concatenate([outcomes.prediction for _, outcomes in workspace.stream(text)])


def ignored(workspace: Workspace) -> int:
    return sum(workspace.outliers.values())


def lines(label: Callable[[random.Random, int], float], *, n: int = N, seed: int = 1) -> Iterator[str]:
    draw = random.Random(seed)
    for i in range(n):
        yield f"{label(draw, i):g} |a x{i % 3}\n"


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("options", [{}, {"automl": 4}], ids=str)
def test_lognormal_labels_are_all_learnt(seed: int, options: dict[str, object]) -> None:
    workspace, _ = learnt(lines(lambda draw, _: draw.lognormvariate(0, 2), seed=seed), **options)
    assert ignored(workspace) == 0


@pytest.mark.parametrize("shape", [1.0, 1.5])
def test_nearly_all_labels_with_a_heavy_tail_are_learnt(shape: float) -> None:
    workspace, _ = learnt(lines(lambda draw, _: draw.paretovariate(shape)))
    assert ignored(workspace) <= 3


def test_rare_rewards_are_learnt() -> None:
    def click(draw: random.Random, _: int) -> float:
        return -float(draw.random() < 0.001)

    workspace, _ = learnt(lines(click, n=20_000), automl=4)
    assert ignored(workspace) == 0


@pytest.mark.parametrize("size", [1.0, 100.0, -5000.0])
def test_labels_after_many_zeros_are_learnt(size: float) -> None:
    workspace, predicted = learnt(lines(lambda _, i: size * (i >= 5000)), automl=4)
    assert ignored(workspace) == 0
    assert predicted[5200:].mean() == pytest.approx(size, rel=0.2)


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e-3])
@pytest.mark.parametrize("options", [{}, {"automl": 4}], ids=str)
def test_new_scale_of_labels_is_learnt(factor: float, options: dict[str, object]) -> None:
    def scaled(draw: random.Random, i: int) -> float:
        return (1.0 + draw.random()) * (factor if i >= 3000 else 1.0)

    workspace, predicted = learnt(lines(scaled), **options)
    assert ignored(workspace) <= 20
    if factor > 1 and options:  # steps of a single config do not grow with the scale, as in VW
        assert predicted[3500:].mean() == pytest.approx(1.5 * factor, rel=0.2)


def test_large_values_of_features_are_learnt() -> None:
    def line(draw: random.Random, i: int) -> str:
        late = f" late:{1.6e9 + i}" if i >= 3000 else ""
        return f"{draw.random():g} |a time:{1.6e9 + i} count:{draw.paretovariate(1.2):g}{late}\n"

    draw = random.Random(3)
    workspace, _ = learnt(line(draw, i) for i in range(N))
    assert ignored(workspace) <= 20


def test_small_propensities_of_a_softmax_are_learnt() -> None:
    def event(draw: random.Random) -> str:
        p = 1 / (1 + np.exp(draw.gauss(0, 2)))
        return f"0:{draw.random():g}:{p:g} |a x\n|a y\n\n"

    draw = random.Random(4)
    workspace, text = Workspace(cb_explore_adf=True, automl=4), "".join(event(draw) for _ in range(N))
    for _ in workspace.stream(text.encode()):
        pass
    assert ignored(workspace) == 0


def test_the_ensemble_goes_on_choosing_well_when_costs_change_their_scale() -> None:
    draw, right = random.Random(3), []
    workspace = Workspace(cb_explore_adf=True, automl=4)
    events = [bandit_event(draw, scale=1000.0 if i >= 2000 else 1.0) for i in range(4000)]
    for _, outcomes in workspace.stream("".join(event.text for event in events).encode()):
        right += (outcomes.prediction - 1).tolist()
    good = np.array(right) == [event.good for event in events]
    assert ignored(workspace) <= 20
    assert good[2500:].mean() > good[1500:2000].mean() - 0.05
