"""Measure the reward of learners that act themselves: ours and VW's, with and without the search.

    python -m bench.quality.on_policy [--seeds 5] [--events 12000] [--sets SET …] [--json FILE]

Each event's action is drawn from the learner's own probabilities, by the same random numbers for all; the
learner is told the reward of that action only. The realised mean reward is what counts. The search explores
by default, and with ε-greedy, ε = 0.05; all others with ε = 0.1.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench import kit
from bench.quality.logs import SETS, BanditLog, head, labelled, load, unlabelled
from bench.quality.runs import LEARNER, VW_FLAGS, Spread, context_by_action, option, spread
from onlineauto import Workspace

TARGETS = {"flights": 0.58, "surveys": 0.69}
"""What the search has to earn."""


class Learner(Protocol):
    """A learner that predicts an event without a label, and learns it with one."""

    def predict(self, text: bytes, /) -> ArrayLike:
        """Probability of each action, by action."""

    def learn(self, text: bytes, /) -> object:
        """Learn an event."""


class VwLearner:
    """VW as a learner."""

    def __init__(self, *flags: str) -> None:
        import vowpalwabbit

        self._workspace = vowpalwabbit.Workspace(" ".join([*VW_FLAGS, *flags]))

    def predict(self, text: bytes, /) -> ArrayLike:
        """Probability of each action, by action."""
        return self._workspace.predict(text.decode().split("\n"))  # type: ignore[no-any-return]

    def learn(self, text: bytes, /) -> None:
        """Learn an event."""
        self._workspace.learn(text.decode().split("\n"))


@dataclass(frozen=True, slots=True)
class Contender:
    """A learner by name."""

    name: str
    make: Callable[[BanditLog], Learner]


@dataclass(frozen=True, slots=True)
class Row:
    """All seeds of one contender on one set."""

    set: str
    who: str
    reward: Spread
    changes: Spread | None  # of champion, if known
    microseconds: float  # an event, predicted and learnt; median

    @property
    def is_search(self) -> bool:
        """Return whether the target is for this contender."""
        return self.who == "ours, search" and self.set in TARGETS


def _ours(**options: Any) -> Workspace:
    return Workspace(**LEARNER | options)


def contenders(search: dict[str, Any]) -> list[Contender]:
    """Everyone; `search` are the options of ours."""
    automl = str(search["automl"])
    return [
        Contender("ours, search", lambda _: _ours(epsilon=None, **search)),
        Contender("ours, ε 0.05", lambda _: _ours(epsilon=0.05, **search)),
        Contender("ours, -q ::", lambda _: _ours(quadratic="::")),
        Contender("ours, ctxZ", lambda log: _ours(**context_by_action(log))),
        Contender("VW, search", lambda _: VwLearner("--automl", automl)),
        Contender("VW, -q ::", lambda _: VwLearner("-q", "::")),
    ]


def play(learner: Learner, log: BanditLog, *, seed: int) -> NDArray[np.float64]:
    """Run a learner on the events of a log; return the reward of each event."""
    draws = np.random.default_rng(seed).random(len(log.events))
    earned = np.empty(len(log.events))
    for i, event in enumerate(map(unlabelled, log.events)):
        chances = np.cumsum(np.asarray(learner.predict(event), np.float64))
        action = int(np.searchsorted(chances, draws[i] * chances[-1], side="right"))
        earned[i] = log.rewards[i, action]
        chance = chances[action] - (chances[action - 1] if action else 0.0)
        learner.learn(labelled(event, action, reward=earned[i], probability=chance / chances[-1]))
    return earned


def row_of(log: BanditLog, contender: Contender, seeds: int) -> Row:
    rewards, times, changes = [], [], []
    for seed in range(seeds):
        learner = contender.make(log)
        begin = time.perf_counter()
        rewards.append(float(play(learner, log, seed=seed).mean()))
        times.append((time.perf_counter() - begin) / len(log.events) * 1e6)
        if isinstance(learner, Workspace):
            changes.append(float(learner.searching.n_switches))
    median = float(np.median(times))
    return Row(log.set, contender.name, spread(rewards), spread(changes) if changes else None, median)


def verdicts(rows: list[Row]) -> dict[str, bool]:
    """Return each target of the search, and whether it is met."""
    return {
        f"{row.set} at least {TARGETS[row.set]:.2f}": row.reward.median >= TARGETS[row.set]
        for row in rows
        if row.is_search
    }


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = kit.parser(
        __doc__,
        seeds=5,
        events=12_000,
        sets=kit.Option(list(TARGETS), choices=SETS),
        automl=kit.Option(4, "live configs"),
        json=Path,
    )
    parser.add_argument("--option", type=option, action="append", default=[], metavar="NAME=VALUE")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; write JSON if asked to; fail if what is asked does not hold."""
    options = _options(argv)
    search = {"automl": options.automl, **dict(options.option)}
    logs = (head(load(f"{name}-u"), options.events) for name in options.sets)
    rows = kit.printed(row_of(log, each, options.seeds) for log in logs for each in contenders(search))
    verdict = verdicts(rows)
    document = {"search": search, "rows": rows, "verdicts": verdict}
    kit.write_json(options.json, document)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
