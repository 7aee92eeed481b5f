"""What a search does to logs with a favourite: how much worse than its first config does it act?

    python -m tests.bench.harm [--seeds 20] [--events 10000]

Two contexts, each with a best action of its own, among 3 or 10 actions; six namespaces of noise, of 400 names
each. The log's policy takes its favourite action whatever the context, but for a share ε of events, on which
it draws. The true rewards are known. Harm is what the search's first config (``--automl 1 --predict_with
champion``) earns more, per event, in greedy actions.
"""

from __future__ import annotations

import argparse
import io
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto import Workspace

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Favourite", "gain", "main"]

_NOISE, _NAMES = 6, 400
_PAYS, _RARELY, _HARDLY = 0.9, 0.5, 0.05
_CONTENDERS = ("champion", "stack")
_HARMED = 0.007


class Favourite(NamedTuple):
    """A log whose policy has a favourite."""

    text: bytes
    rewards: NDArray[np.float64]  # [events, actions]: the true ones

    @classmethod
    def draw(cls, *, events: int, actions: int, epsilon: float, seed: int) -> Favourite:
        """Draw a log of which the favourite is action 0."""
        draw = np.random.default_rng(seed)
        of_context = np.full((2, actions), _HARDLY)
        of_context[0, :2] = _PAYS, _RARELY
        of_context[1, :2] = _RARELY, _PAYS
        context, noise = draw.integers(0, 2, events), draw.integers(0, _NAMES, (events, _NOISE))
        explores, drawn, luck = (
            draw.random(events) < epsilon,
            draw.integers(0, actions, events),
            draw.random(events),
        )
        rewards, lines = of_context[context], []
        for i in range(events):
            action = drawn[i] if explores[i] else 0
            probability = epsilon / actions + (1 - epsilon) * (action == 0)
            cost = -int(luck[i] < rewards[i, action])
            names = " ".join(f"|{'nopqrs'[j]} {noise[i, j]}" for j in range(_NOISE))
            lines.append(f"shared |x {context[i]} {names}")
            lines += [
                (f"0:{cost}:{probability:.6f} " if each == action else "") + f"|Z {each}"
                for each in range(actions)
            ]
            lines.append("")
        return cls("\n".join([*lines, ""]).encode(), rewards)


def _earned(log: Favourite, **options: Any) -> NDArray[np.float64]:
    """Return the true reward of each greedy action."""
    workspace = Workspace(cb_explore_adf=True, epsilon=0.1, **options)
    first = [found.action[found.rows["action_start"]] for _, found in workspace.stream(io.BytesIO(log.text))]
    greedy = np.concatenate(first)
    earned: NDArray[np.float64] = log.rewards[np.arange(len(greedy)), greedy]
    return earned


def gain(log: Favourite, who: str) -> float:
    """Return what a search that predicts with `who` earns more per event than its first config."""
    first = _earned(log, automl=1, predict_with="champion")
    return float((_earned(log, automl=4, predict_with=who) - first).mean())


def main(words: list[str] | None = None) -> None:
    """Print the gains of many seeds for each shape of log."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--events", type=int, default=10_000)
    asked = parser.parse_args(words)
    print("actions  epsilon  predicts with    mean   worst  harmed")
    for actions in (3, 10):
        for epsilon in (0.015, 0.045, 0.1, 0.2):
            logs = [
                Favourite.draw(events=asked.events, actions=actions, epsilon=epsilon, seed=seed)
                for seed in range(asked.seeds)
            ]
            for who in _CONTENDERS:
                gains = np.array([gain(log, who) for log in logs])
                harmed = int((gains < -_HARMED).sum())
                print(
                    f"{actions:7}  {epsilon:7}  {who:13}  {gains.mean():+.4f}  {gains.min():+.3f}  "
                    f"{harmed} of {len(gains)}",
                    flush=True,
                )


if __name__ == "__main__":
    main(sys.argv[1:])
