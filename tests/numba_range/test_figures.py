"""Learning, one run of each kind: the figures are the same with every Numba of the range.

They are compared to six digits, since the last bit of a logarithm depends on the processor.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from onlineauto.workspace.workspace import Workspace

Figures = tuple[float, float, float, int, int]
"""Sums of the losses, of the squares of all that was predicted, and of those of all weights; how often the
champion changed, and how often it predicted worse than before."""


def lines(n: int) -> str:
    """Labels between 0 and 1, which two categories explain together."""
    draw = random.Random(1)
    text = ""
    for _ in range(n):
        i, j = draw.randrange(3), draw.randrange(3)
        text += f"{(i ^ j) / 3 + draw.random() / 9:.4f} |a i{i} x:{draw.random():.3f} |b j{j}\n"
    return text


def far_off(n: int) -> str:
    """Labels that nothing explains."""
    draw = random.Random(5)
    return "".join(f"{draw.choice([-2, 3])} |a x |b y\n" for _ in range(n))


def bandits(n: int) -> str:
    """Three actions, of which two categories make one the best."""
    draw, text = random.Random(2), ""
    for _ in range(n):
        i, j, shown = draw.randrange(3), draw.randrange(3), draw.randrange(3)
        cost = -int(draw.random() < (0.8 if (i + j) % 3 == shown else 0.2))
        text += f"shared |a i{i} |b j{j}\n"
        text += (
            "".join(f"{f'0:{cost}:0.3333 ' if k == shown else ''}|z k{k} y:{k}.5\n" for k in range(3)) + "\n"
        )
    return text


def slots(n: int) -> str:
    """Two slots for three actions."""
    draw, text = random.Random(3), ""
    for _ in range(n):
        i, (one, two) = draw.randrange(3), draw.sample(range(3), 2)
        text += f"ccb shared |a i{i}\n" + "".join(f"ccb action |z k{k}\n" for k in range(3))
        text += "".join(
            f"ccb slot {k}:{-int(draw.random() < (0.9 if k == i else 0.1))}:0.5 |s s{number}\n"
            for number, k in enumerate((one, two))
        )
        text += "\n"
    return text


def logs(n: int) -> str:
    """Logs of a decision service."""
    draw, text = random.Random(4), ""
    for number in range(n):
        i, shown = draw.randrange(3), draw.randrange(3)
        order = [shown + 1, *(k + 1 for k in range(3) if k != shown)]
        cost = -int(draw.random() < (0.8 if i == shown else 0.1))
        actions = ",".join(f'{{"z":{{"k":"{k}"}}}}' for k in range(3))
        text += f'{{"_label_cost":{cost},"_label_probability":0.5,'
        text += f'"_label_Action":{shown + 1},"_labelIndex":{shown},'
        text += f'"EventId":"e{number}","a":{order},"p":[0.5,0.25,0.25],'
        text += f'"c":{{"u":{{"i":"{i}","w":{number % 7}.25}},"_multi":[{actions}]}}}}\n'
    return text


RUNS: dict[str, tuple[str, dict[str, Any], Figures]] = {
    "regression": (lines(300), {"quadratic": ["::"]}, (9.81419867, 110.067909, 4503.85566, 0, 0)),
    "regression searched": (
        lines(2000),
        {"automl": 4, "lease": 200},
        (12.8524748, 802.665286, 26148.8853, 2, 0),
    ),
    "bandit": (
        bandits(300),
        {"cb_adf": True, "quadratic": ["::"]},
        (-120.012007, 249.514388, 43743296, 0, 0),
    ),
    "doubly robust": (
        bandits(300),
        {"cb_explore_adf": True, "cb_type": "dr"},
        (-147.664766, 279.898317, 154992210, 0, 0),
    ),
    "searched": (
        bandits(3000),
        {"cb_explore_adf": True, "automl": 4, "lease": 200},
        (-2410.13076, 2888.99491, 240169047, 2, 0),
    ),
    "drift": (
        "".join(f"{number % 2} |a x{number % 2} |b y\n" for number in range(4000)) + far_off(2000),
        {"automl": 2, "default_lease": 4000, "on_drift": "reset_challengers"},
        (12620.7931, 2725.21267, 1.51679006e10, 0, 1),
    ),
    "squarecb": (
        bandits(300),
        {"cb_explore_adf": True, "squarecb": True, "elim": True},
        (-141.678709, 256.698589, 146082.756, 0, 0),
    ),
    "softmax": (
        bandits(300),
        {"cb_explore_adf": True, "softmax": True, "lambda_": 3.0},
        (-140.37877, 106.056316, 1484019.22, 0, 0),
    ),
    "bag": (bandits(300), {"cb_explore_adf": True, "bag": 3}, (-139.513965, 214.111117, 3894637.22, 0, 0)),
    "cover": (bandits(300), {"cb_explore_adf": True, "cover": 3}, (-137.232554, 139.001926, 348004815, 0, 0)),
    "rnd": (bandits(300), {"cb_explore_adf": True, "rnd": 2}, (-138.085725, 155.865702, 1505913.43, 0, 0)),
    "regcb": (
        bandits(300),
        {"cb_explore_adf": True, "regcb": True},
        (-141.014119, 100.166673, 146082.756, 0, 0),
    ),
    "decay": (
        bandits(300),
        {"cb_explore_adf": True, "epsilon_decay": True},
        (-141.377686, 223.334528, 1873144.16, 0, 0),
    ),
    "slots": (
        slots(300),
        {"ccb_explore_adf": True, "quadratic": ["::"]},
        (-363.766655, 564.822046, 430756.617, 0, 0),
    ),
    "logs": (logs(300), {"cb_explore_adf": True, "dsjson": True}, (-41.499999, 278.845401, 8057853.57, 0, 0)),
    "exact": (
        bandits(300),
        {"cb_explore_adf": True, "quadratic": ["::"], "vw_exact": True},
        (-119.161926, 279.898317, 43743289.8, 0, 0),
    ),
    "exact search": (
        bandits(1000),
        {"cb_explore_adf": True, "automl": 3, "vw_exact": True},
        (-404.190452, 934.39828, 642098303, 0, 0),
    ),
}


def figures(text: str, options: dict[str, Any]) -> Figures:
    workspace = Workspace(**options)
    loss = square = 0.0
    for _, outcomes in workspace.stream(text.encode()):
        loss += float(outcomes.loss.astype(np.float64).sum())
        predicted = outcomes.score if len(outcomes.score) else outcomes.prediction
        square += float((predicted.astype(np.float64) ** 2).sum())
    weights = float((workspace.weights.astype(np.float64) ** 2).sum())
    return loss, square, weights, workspace.searching.n_switches, workspace.searching.n_alarms


@pytest.mark.parametrize("kind", RUNS)
def test_figures_are_those_committed(kind: str) -> None:
    text, options, committed = RUNS[kind]
    assert figures(text, options) == pytest.approx(committed, rel=1e-6)
