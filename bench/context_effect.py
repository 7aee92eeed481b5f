"""Reward where the context moves the reward by far more than the action does.

``python -m bench.context_effect [--seeds 10] [--events 16000]`` prints for each seed what ``-q ::``
earns, and how much more or less the ensemble earns by default and without the member ``baseline``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import kit
from onlineauto import Workspace

WITHOUT = "features,waves,crosses,layer,ridge,trees"
"""The default members but `baseline`."""


def stream(
    seed: int, *, n: int = 16_000, users: int = 20, times: int = 8, actions: int = 5
) -> tuple[bytes, NDArray[np.float64]]:
    """Return events logged uniformly, and the expected reward of each action of each event.

    User and time together move the reward by up to 3, the right action of the user by 0.3, noise by 0.3.
    """
    draw = np.random.default_rng(seed)
    of_context, right = 3.0 * (draw.random((users, times)) - 0.5), draw.integers(actions, size=users)
    text, expected = [], np.zeros((n, actions))
    for event in range(n):
        user, time, logged = (int(draw.integers(many)) for many in (users, times, actions))
        expected[event] = of_context[user, time] + 0.3 * (np.arange(actions) == right[user])
        cost = -(expected[event, logged] + 0.3 * draw.normal())
        labels = [f"0:{cost:.4f}:{1 / actions:.4f} " if action == logged else "" for action in range(actions)]
        lines = (f"{label}|a a{action}\n" for action, label in enumerate(labels))
        text.append(f"shared |u u{user} |t t{time}\n{''.join(lines)}\n")
    return "".join(text).encode(), expected


def earned(options: Mapping[str, Any], text: bytes, expected: NDArray[np.float64]) -> float:
    """Return the mean expected reward of the best action by each prediction before the event is learnt."""
    chosen: list[int] = []
    for _, outcomes in Workspace(cb_adf=True, **options).stream(text):
        chosen += outcomes.action[outcomes.rows["action_start"]].tolist()
    return float(np.mean(expected[np.arange(len(chosen)), chosen]))


def main() -> None:
    """Print a row for each seed."""
    arguments = kit.parser(__doc__, seeds=10, events=16_000).parse_args()
    print("seed   -q ::  default  without baseline")
    for seed in range(arguments.seeds):
        text, expected = stream(seed, n=arguments.events)
        found = [
            earned(options, text, expected)
            for options in ({"quadratic": ["::"]}, {"automl": 4}, {"automl": 4, "members": WITHOUT})
        ]
        default, without = (each - found[0] for each in found[1:])
        print(f"{seed:4} {found[0]:7.4f} {default:+8.4f} {without:+17.4f}", flush=True)


if __name__ == "__main__":
    main()
