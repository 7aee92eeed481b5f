"""Measure how much worse a search acts than its first config on logs with a favourite action.

    python -m bench.quality.harm [--seeds 20] [--events 10000] [--shapes NAME ...]

Two contexts, each with a best action of its own, among 3 or 10 actions; six namespaces of noise, of 400 names
each. The log's policy takes its favourite action, but for a share ε of events, on which it draws. The true
rewards are known. Harm is what the search's first config (``--automl 1 --predict_with champion``) earns more,
per event, in greedy actions.

plain: the favourite is always the same. confounded: half of the time all actions pay more, and then it is
another; no feature tells when, but the logged probabilities are right. heavy: a reward is multiplied by
exp(1.5 z − 1.125) with a normal z, so few events pay most. runs: contexts, noise and drawn actions stay for
50 events. acting: there is no log, learners act by themselves with an ε of 0.1.
"""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench import kit
from onlineauto import Workspace

SHAPES = ("plain", "confounded", "heavy", "runs", "acting")
"""What logs there are."""

_NOISE, _NAMES = 6, 400
_PAYS, _RARELY, _HARDLY = 0.9, 0.5, 0.05
_CONTENDERS = ("champion", "ensemble")
_HARMED = 0.007
_RUN, _BAD_TIMES = 50, 0.4
_LABEL = re.compile(r"^0:\S+ (?=\|Z)", re.MULTILINE)


class Favourite(NamedTuple):
    """A log whose policy has a favourite."""

    text: bytes
    rewards: NDArray[np.float64]  # [events, actions]: the true ones
    paid: NDArray[np.float64]  # [events, actions]: what there was to earn in each event

    @classmethod
    def draw(cls, *, events: int, actions: int, epsilon: float, seed: int, shape: str = "plain") -> Favourite:
        """Draw a log of which the favourite is action 0, or another in good times if it is confounded."""
        draw = np.random.default_rng(seed)
        of_context = np.full((2, actions), _HARDLY)
        of_context[0, :2] = _PAYS, _RARELY
        of_context[1, :2] = _RARELY, _PAYS
        stays = _RUN if shape == "runs" else 1
        context, noise, explores, drawn = (
            each.repeat(stays, axis=0)[:events]
            for each in (
                draw.integers(0, 2, events),
                draw.integers(0, _NAMES, (events, _NOISE)),
                draw.random(events) < epsilon,
                draw.integers(0, actions, events),
            )
        )
        rewards, luck = of_context[context], draw.random((events, actions))
        good = draw.random(events) < (0.5 if shape == "confounded" else 1.0)
        scale = np.where(good, 1.0, _BAD_TIMES)
        if shape == "heavy":
            scale = np.exp(1.5 * draw.standard_normal(events) - 1.125)
        paid = np.where(luck < rewards, scale[:, None], 0.0)
        favourite = np.where(good, 0, actions - 1) if shape == "confounded" else np.zeros(events, int)
        lines = []
        for i in range(events):
            action = drawn[i] if explores[i] else favourite[i]
            probability = epsilon / actions + (1 - epsilon) * (action == favourite[i])
            names = " ".join(f"|{'nopqrs'[j]} {noise[i, j]}" for j in range(_NOISE))
            lines.append(f"shared |x {context[i]} {names}")
            lines += [
                (f"0:{-paid[i, action]:.6g}:{probability:.6f} " if each == action else "") + f"|Z {each}"
                for each in range(actions)
            ]
            lines.append("")
        return cls("\n".join([*lines, ""]).encode(), rewards, paid)


def _earned(log: Favourite, **options: Any) -> NDArray[np.float64]:
    """Return the true reward of each greedy action."""
    workspace = Workspace(cb_explore_adf=True, epsilon=0.1, **options)
    first = [found.action[found.rows["action_start"]] for _, found in workspace.stream(io.BytesIO(log.text))]
    greedy = np.concatenate(first)
    earned: NDArray[np.float64] = log.rewards[np.arange(len(greedy)), greedy]
    return earned


def _acted(log: Favourite, **options: Any) -> NDArray[np.float64]:
    """Return the true reward of each greedy action of a learner that acts itself."""
    workspace, draw = Workspace(cb_explore_adf=True, epsilon=0.1, **options), np.random.default_rng(0)
    events = _LABEL.sub("", log.text.decode()).split("\n\n")[:-1]
    greedy = np.empty(len(events), int)
    for i, (event, paid, luck) in enumerate(zip(events, log.paid, draw.random(len(events)), strict=True)):
        chances = np.asarray(workspace.predict(event + "\n\n"), np.float64)
        greedy[i] = chances.argmax()
        action = min(int(np.searchsorted(np.cumsum(chances), luck)), len(chances) - 1)
        shared, *lines = event.split("\n")
        lines[action] = f"0:{-paid[action]:.6g}:{chances[action]:.6f} {lines[action]}"
        workspace.learn("\n".join([shared, *lines, "", ""]))
    earned: NDArray[np.float64] = log.rewards[np.arange(len(greedy)), greedy]
    return earned


def gain(log: Favourite, who: str, *, acts: bool = False) -> float:
    """Return the gain per event of a search that predicts with `who` over its first config."""
    earned = _acted if acts else _earned
    first = earned(log, automl=1, predict_with="champion")
    return float((earned(log, automl=4, predict_with=who) - first).mean())


def main(words: Sequence[str] | None = None) -> None:
    """Print the gains of many seeds for each shape of log."""
    asked = kit.parser(
        __doc__,
        seeds=20,
        events=10_000,
        shapes=kit.Option(SHAPES, choices=SHAPES),
        epsilons=[0.015, 0.045, 0.1, 0.2],
    ).parse_args(words)
    print("shape       actions  epsilon  predicts with    mean   worst  harmed")
    for shape, actions, epsilon in product(asked.shapes, (3, 10), asked.epsilons):
        acts = shape == "acting"
        if acts and epsilon != asked.epsilons[0]:
            continue  # it is not that of a log
        logs = [
            Favourite.draw(events=asked.events, actions=actions, epsilon=epsilon, seed=seed, shape=shape)
            for seed in range(asked.seeds)
        ]
        for who in _CONTENDERS:
            gains = np.array([gain(log, who, acts=acts) for log in logs])
            harmed = int((gains < -_HARMED).sum())
            print(
                f"{shape:10}  {actions:7}  {'' if acts else epsilon:>7}  {who:13}  {gains.mean():+.4f}  "
                f"{gains.min():+.3f}  {harmed} of {len(gains)}",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
