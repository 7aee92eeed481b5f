"""An ensemble hardly ever predicts by chance, predicts soon where it earns more, and then earns more.

Where nothing depends on anything, losses still prove something: an ensemble shrinks what the champion has
learnt from noise, and so does predict costs better. It earns no less by it. Rewards must prove nothing there.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

from onlineauto import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    Reward = Callable[[np.random.Generator, int], float]

LEVEL = 0.05


def null(n: int, *, seed: int, favourite: float, reward: Reward, repeats: float = 0.0) -> bytes:
    """Events whose rewards depend on nothing.

    `favourite` is the probability with which one action is logged besides, and `repeats` that with which a
    context is that of the event before.
    """
    draw, text, context = np.random.default_rng(seed), [], ""
    for at in range(n):
        if not context or draw.random() >= repeats:
            context = f"|w w{draw.integers(3)} |n x:{draw.normal():.3f}"
        shown = 0 if draw.random() < favourite else int(draw.integers(4))
        p = (1 - favourite) / 4 + favourite * (shown == 0)
        label = f"0:{-reward(draw, at):.4f}:{p:.6f} "
        lines = "".join(f"{label if k == shown else ''}|a a{k}\n" for k in range(4))
        text.append(f"shared {context}\n{lines}\n")
    return "".join(text).encode()


NULLS: dict[str, Callable[[int, int], bytes]] = {
    "uniform": lambda n, seed: null(
        n, seed=seed, favourite=0.0, reward=lambda draw, _: float(draw.random() < 0.5)
    ),
    "a favourite, heavy tails": lambda n, seed: null(
        n, seed=seed, favourite=0.7, reward=lambda draw, _: draw.exponential() ** 3
    ),
    "a favourite, contexts stay": lambda n, seed: null(
        n, seed=seed, favourite=0.7, repeats=0.9, reward=lambda draw, _: draw.normal()
    ),
    "rewards grow": lambda n, seed: null(
        n, seed=seed, favourite=0.3, reward=lambda draw, at: (1 + at / n) * draw.random()
    ),
}


def note(served: list[str], entry: object) -> None:
    served.append(getattr(entry, "who", ""))


def served_by_rewards(stream: Callable[[int, int], bytes], n: int, seeds: int) -> int:
    """Return the number of streams in which rewards alone prove that the ensemble earns more."""
    found = 0
    for seed in range(seeds):
        workspace = Workspace(
            cb_explore_adf=True, automl=2, default_lease=500, bit_precision=10, champion_test="reward"
        )
        served: list[str] = []
        workspace.observe(partial(note, served))
        workspace.fit(stream(n, seed))
        found += "ensemble" in served
    return found


@pytest.mark.parametrize("name", NULLS)
def test_rewards_prove_nothing_on_streams_without_signal(name: str) -> None:
    assert served_by_rewards(NULLS[name], 1000, 5) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", NULLS)
def test_they_hardly_ever_do(name: str) -> None:
    seeds = 200
    most = seeds * LEVEL + 3 * math.sqrt(seeds * LEVEL * (1 - LEVEL))
    assert served_by_rewards(NULLS[name], 5000, seeds) <= most


def test_an_ensemble_earns_more_where_numbers_decide() -> None:
    draw, text, pays = np.random.default_rng(1), [], []
    for _ in range(2500):
        x, word, shown = draw.normal(), int(draw.integers(3)), int(draw.integers(4))
        good = [0.8 if (abs(x) > 0.67) == (k % 2 == 0) else 0.2 for k in range(4)]
        cost = -float(draw.random() < good[shown])
        lines = "".join(f"{f'0:{cost}:0.25 ' if k == shown else ''}|a a{k}\n" for k in range(4))
        text.append(f"shared |w w{word} |n x:{x:.4f}\n{lines}\n")
        pays.append(good)
    earned = {}
    for who in ("champion", "ensemble"):
        workspace = Workspace(cb_explore_adf=True, automl=3, predict_with=who)
        workspace.fit("".join(text[:1500]).encode())
        assert workspace.searching.live_configs.arrays.ensemble.serves == (who == "ensemble")
        chosen = [int(np.argmax(workspace.learn(event))) for event in text[1500:]]
        earned[who] = np.mean([good[k] for good, k in zip(pays[1500:], chosen, strict=True)])
    assert earned["ensemble"] > 0.75
    assert earned["ensemble"] > earned["champion"] + 0.1
