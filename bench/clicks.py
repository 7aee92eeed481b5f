"""Clicks on logs where rewards are rare.

``python -m bench.clicks [--seeds 10] [--events 20000]`` prints for a mean click rate of 1 % and of 4 %
what the choices of some variants earn, in multiples of the rate of random choices: the ensemble by default
and without the member `ridge`, the champion, ``-q ::``, and the best single action. The last line of a rate
has the means over all seeds and, for the default, the number of seeds on which it earns more than ``-q ::``.

``python -m bench.clicks --keep`` compares shares of ``--keep_unrewarded`` at a rate of 1 %: CPU per
learnt event, reading included, and what the model earns afterwards on half as many events.
"""

from __future__ import annotations

from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import kit
from bench.context_effect import earned
from onlineauto import Workspace

WITHOUT = "features,waves,crosses,layer,baseline,trees"
"""The default members but `ridge`."""

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {"automl": 4},
    "without ridge": {"automl": 4, "members": WITHOUT},
    "champion": {"automl": 4, "predict_with": "champion"},
    "-q ::": {"quadratic": ["::"]},
}

_ACTIONS = 10
_WORDS = {"a": 6, "g": 2, "d": 3, "r": 12}
"""Words of the context: the letter and the number of values of each, such as those of age or region."""


def stream(seed: int, *, rate: float, n: int = 20_000) -> tuple[bytes, NDArray[np.float64]]:
    """Return events logged uniformly, and the probability of a click on each action of each event.

    Its logarithm is a sum of effects of words and of two numbers. Each has one part for all actions and one
    for each action.
    """
    draw = np.random.default_rng(seed)
    words = {letter: draw.integers(many, size=n) for letter, many in _WORDS.items()}
    numbers = draw.normal(size=(n, 2))
    size = numbers @ draw.normal(0, 0.25, (2, _ACTIONS)) + draw.normal(0, 0.3, _ACTIONS)
    for letter, many in _WORDS.items():
        size += draw.normal(0, 0.35, (many, _ACTIONS))[words[letter]]
        size += draw.normal(0, 0.4, (many, 1))[words[letter]]
    clicks = np.minimum(np.exp(size) * (rate / np.exp(size).mean()), 0.9)
    logged = draw.integers(_ACTIONS, size=n)
    clicked = draw.random(n) < clicks[np.arange(n), logged]
    text = []
    for event in range(n):
        context = " ".join(f"|{letter} {letter}{of[event]}" for letter, of in words.items())
        text.append(f"shared {context} |n x:{numbers[event, 0]:.3f} y:{numbers[event, 1]:.3f}\n")
        for action in range(_ACTIONS):
            label = f"0:{-int(clicked[event])}:{1 / _ACTIONS} " if action == logged[event] else ""
            text.append(f"{label}|z z{action}\n")
        text.append("\n")
    return "".join(text).encode(), clicks


def keep(seeds: int, n: int) -> None:
    """Print CPU µs per event and the multiple of the rate that is earned, for some shares of events kept."""
    for options in ({"automl": 4}, {"quadratic": ["::"]}):
        for share in (1.0, 0.1, 0.05):
            rows = []
            for seed in range(seeds):
                text, clicks = stream(seed, rate=0.01, n=n * 3 // 2)
                events = text.split(b"\n\n")
                learnt, later = (b"\n\n".join(part) + b"\n\n" for part in (events[:n], events[n:-1]))
                workspace = Workspace(cb_adf=True, keep_unrewarded=share, **options)
                begin = process_time()
                workspace.fit(learnt)
                used = process_time() - begin
                predictor = workspace.predictor()
                chosen = []
                for block in workspace.read(later):
                    outcomes = predictor.predict_block(block)
                    chosen += outcomes.action[outcomes.action_start[:-1]].tolist()
                rows.append(
                    (used / n * 1e6, clicks[n + np.arange(len(chosen)), chosen].mean() / clicks.mean())
                )
            cost, gain = np.median(rows, axis=0)[0], np.mean(rows, axis=0)[1]
            error = np.std(rows, axis=0)[1] / max(seeds - 1, 1) ** 0.5
            print(
                f"{options} keep {share}: {cost:.1f} µs, {gain:.2f} ± {error:.2f} times the rate", flush=True
            )


def main() -> None:
    """Print a table for each rate."""
    arguments = kit.parser(__doc__, seeds=10, events=20_000, keep=False).parse_args()
    if arguments.keep:
        keep(arguments.seeds, arguments.events)
        return
    for rate in (0.01, 0.04):
        print(f"{rate:.0%}    " + "".join(f"{name:>15}" for name in (*VARIANTS, "best action")))
        rows = []
        for seed in range(arguments.seeds):
            text, clicks = stream(seed, rate=rate, n=arguments.events)
            found = [earned(options, text, clicks) for options in VARIANTS.values()]
            rows.append([each / clicks.mean() for each in (*found, clicks.mean(axis=0).max())])
            print(f"{seed:5} " + "".join(f"{each:15.3f}" for each in rows[-1]), flush=True)
        table = np.array(rows)
        better = int((table[:, 0] > table[:, 3]).sum())
        print(" mean " + "".join(f"{each:15.3f}" for each in table.mean(axis=0)) + f"   better: {better}")


if __name__ == "__main__":
    main()
