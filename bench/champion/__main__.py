"""The champion test beside VW's: how soon what is better is found, how often what is not, and after a flip.

    python -m bench.champion [--streams 2000] [--json FILE]

Logs are simulated (`bench.champion.streams`): the champion's ε-greedy policy, or a uniform one, logs
one of 8 actions with rewards of 0 or 1, or one of 12 with graded ones. VW's test is two robust intervals;
ours is the paired test with the mean reward as baseline, with weak predictions of rewards ("predicted"),
without a known floor ("unknown"), or with predictions and a floor and range learnt on the way ("learnt", the
search's default). All have the level 0.0125, which is what VW gives each of 4 live configs.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from bench.champion.streams import LEARNT, PAIRED, PREDICTED, UNKNOWN, VW, Log, first_events

LEVEL = 0.0125
_NAMES = {VW: "VW", PAIRED: "paired", PREDICTED: "predicted", UNKNOWN: "unknown", LEARNT: "learnt"}
_OURS = (PAIRED, PREDICTED, UNKNOWN, LEARNT)
_FLIP = 40_000


@dataclass(frozen=True, slots=True)
class Power:
    """Median events until what is better is found."""

    rewards: str
    epsilon: float
    gain: float
    events: dict[str, float]

    def ratio(self, test: str) -> float:
        """How many times fewer than VW's."""
        return self.events["VW"] / self.events[test]


@dataclass(frozen=True, slots=True)
class Null:
    """Share of streams in which a challenger is promoted that is never ahead on average."""

    name: str
    streams: int
    wrong: dict[str, float]


@dataclass(frozen=True, slots=True)
class Delay:
    """Median events from a flip, after which the challenger is better, until it is found."""

    flip: int
    events: dict[str, float]


def powers(streams: int) -> list[Power]:
    """The grid."""
    rows = []
    for binary in (True, False):
        for epsilon in (0.05, 0.1, 0.2, 1.0):
            for gain, disagree in ((0.02, 0.1), (0.05, 0.2), (0.1, 0.3)):
                log = Log(epsilon, 8 if binary else 12, disagree, gain / disagree, binary=binary)
                found = {
                    name: float(
                        np.median(first_events(log, which, streams=streams, events=10**7, alpha=LEVEL))
                    )
                    for which, name in _NAMES.items()
                }
                rows.append(Power("binary" if binary else "graded", epsilon, gain, found))
    return rows


NULLS = {
    "eps .05, differ in .2, mean .5": Log(0.05, 8, 0.2, 0.0, binary=True),
    "eps .1, differ in .2, mean .5": Log(0.1, 8, 0.2, 0.0, binary=True),
    "eps .2, differ in .2, mean .5": Log(0.2, 8, 0.2, 0.0, binary=True),
    "eps .1, differ in .05, mean .1": Log(0.1, 8, 0.05, 0.0, mean=0.1, spread=0.05, binary=True),
    "eps .05, differ in .02, mean .05": Log(0.05, 8, 0.02, 0.0, mean=0.05, spread=0.03, binary=True),
    "uniform, differ in .3, mean .5": Log(1.0, 8, 0.3, 0.0, binary=True),
    "uniform of 2, always differ": Log(1.0, 2, 1.0, 0.0, binary=True),
    "eps .1, differ in .3, two rewards": Log(0.1, 8, 0.3, 0.0, spread=0.45),
    "eps .01 of 20, heavy tails": Log(0.01, 20, 0.3, 0.0, binary=True),
    "alternating, eps .1": Log(0.1, 8, 0.2, 0.25, period=256, binary=True),
    "alternating, uniform": Log(1.0, 8, 0.3, 0.33, period=256, binary=True),
    "optimistic predictions, eps .05": Log(0.05, 8, 0.2, 0.0, optimism=0.2, binary=True),
    "optimistic predictions, eps .1": Log(0.1, 8, 0.2, 0.0, optimism=0.2, binary=True),
    "optimistic, eps .1, mean .1": Log(0.1, 8, 0.05, 0.0, 0.1, 0.05, binary=True, optimism=0.2),
    "slightly worse, uniform": Log(1.0, 8, 0.3, -0.01, binary=True),
}
"""Challengers that are never ahead on average."""


def nulls(streams: int, events: int = 50_000) -> list[Null]:
    """False promotions, looked for after every event."""
    return [
        Null(
            name,
            streams,
            {
                _NAMES[which]: float(
                    np.mean(first_events(log, which, streams=streams, events=events, alpha=LEVEL) <= events)
                )
                for which in _OURS
            },
        )
        for name, log in NULLS.items()
    ]


def delays(streams: int) -> list[Delay]:
    """After how many events of being better a challenger is found that was as much worse before."""
    rows = []
    for flip in (0, _FLIP // 4, _FLIP):
        log = Log(0.2, 8, 0.2, 0.25, binary=True, flip=flip)
        found = {
            name: float(
                np.median(first_events(log, which, streams=streams, events=10**7, alpha=LEVEL)) - flip
            )
            for which, name in _NAMES.items()
        }
        rows.append(Delay(flip, found))
    return rows


def allowed(streams: int) -> float:
    """The level and four standard errors."""
    return LEVEL + 4 * math.sqrt(LEVEL * (1 - LEVEL) / streams)


def _print_powers(rows: list[Power]) -> None:
    print(f"{'rewards':8}{'logs':>8}{'gain':>6}" + "".join(f"{name:>11}" for name in _NAMES.values()))
    for row in rows:
        logs = "uniform" if row.epsilon == 1 else f"eps {row.epsilon:g}"
        cells = "".join(f"{n:11,.0f}" for n in row.events.values())
        ratios = "  ".join(f"{row.ratio(_NAMES[which]):.1f}" for which in _OURS)
        print(f"{row.rewards:8}{logs:>8}{row.gain:6.2f}{cells}   VW's over ours: {ratios}")


def _print_nulls(rows: list[Null]) -> None:
    print(f"\n{'never ahead':36}" + "".join(f"{_NAMES[which]:>11}" for which in _OURS))
    for row in rows:
        print(f"{row.name:36}" + "".join(f"{share:11.2%}" for share in row.wrong.values()))
    print(f"allowed: {allowed(rows[0].streams):.2%}")


def _print_delays(rows: list[Delay]) -> None:
    print(f"\n{'flip at':8}" + "".join(f"{name:>11}" for name in _NAMES.values()))
    for row in rows:
        print(f"{row.flip:<8}" + "".join(f"{n:11,.0f}" for n in row.events.values()))


def verdicts(power: list[Power], null: list[Null], delay: list[Delay]) -> dict[str, bool]:
    """What is asked of the test, and whether it holds."""
    best = [max(row.ratio("paired"), row.ratio("predicted")) for row in power]
    binary = [row for row in power if row.rewards == "binary"]
    uniform = [ratio for row, ratio in zip(power, best, strict=True) if row.epsilon == 1]
    return {
        "5 times fewer events, median": float(np.median([row.ratio("paired") for row in binary])) >= 5,
        "5 times fewer with predictions, median": float(np.median(best)) >= 5,
        "30 times fewer on uniform logs, median": float(np.median(uniform)) >= 30,
        "false promotions as allowed": all(
            share <= allowed(row.streams) for row in null for share in row.wrong.values()
        ),
        "a quarter of VW's delay after a flip": delay[-1].events["paired"] <= delay[-1].events["VW"] / 4,
    }


def main(argv: list[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--streams", type=int, default=2000, help="of each null; a 20th for each median")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    few = max(options.streams // 20, 5)
    power = powers(few)
    _print_powers(power)
    null = nulls(options.streams)
    _print_nulls(null)
    delay = delays(few)
    _print_delays(delay)
    verdict = verdicts(power, null, delay)
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        rows = {
            "power": [asdict(row) for row in power],
            "null": [asdict(row) for row in null],
            "delay": [asdict(row) for row in delay],
            "verdicts": verdict,
        }
        options.json.write_text(json.dumps(rows, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
