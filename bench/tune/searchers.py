"""Regret of searchers with full trials, beside the peers' figures.

    python -m bench.tune.searchers [--seeds 16] [--workers 1] [--only rosenbrock]

200 trials, each at full resource and without noise: the mean regret after 50, 100 and 200. With several
workers, trials last between 0.5 and 1.5 units, so that some are running when a config is proposed.
"""

from __future__ import annotations

import heapq
import math
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, Final

import numpy as np

from bench import kit
from bench.tune.functions import HARTMANN_6, hartmann_regret
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Categorical, Float, Int, Space

_WORDS: Final = "abcd"
_BRANCHES: Final = Space(
    {
        "kind": Categorical(["svm", "net", "knn"]),
        "C": Float(1e-3, 1e3, log=True, when={"kind": "svm"}),
        "gamma": Float(1e-5, 1e1, log=True, when={"kind": "svm"}),
        "layers": Int(1, 4, when={"kind": "net"}),
        "rate": Float(1e-5, 1, log=True, when={"kind": "net"}),
        "k": Int(1, 50, when={"kind": "knn"}),
    }
    | {
        f"u{at}": Int(4, 256, log=True, when={"kind": "net", "layers": list(range(at + 1, 5))})
        for at in range(4)
    }
)


def _branches(config: Any) -> float:
    if config["kind"] == "svm":
        off = (math.log10(config["C"]) - 1) ** 2 + (math.log10(config["gamma"]) + 2) ** 2
        return 0.18 + off / 4
    if config["kind"] == "knn":
        return float(0.33 + abs(config["k"] - 7) / 50)
    units = sum(abs(config[f"u{at}"] - (40 + 30 * at)) / 128 for at in range(config["layers"]))
    off = units / config["layers"] + (math.log10(config["rate"]) + 2.5) ** 2 / 3
    return float(off + 0.1 * abs(config["layers"] - 3))


_MIXED: Final = Space(
    {f"x{at}": Float(-5, 5) for at in range(3)}
    | {f"c{at}": Categorical(list(_WORDS)) for at in range(3)}
    | {"n": Int(1, 64, log=True)}
)


def _mixed(config: Any) -> float:
    loss = abs(math.log2(config["n"]) - 4) / 4
    for at in range(3):
        word = _WORDS.index(config[f"c{at}"])
        loss += (config[f"x{at}"] - (1, -2, 3, 0.5)[word]) ** 2 / 10 + (0.0, 0.3, 0.15, 0.5)[(word + at) % 4]
    return float(loss)


def _rosenbrock(config: Any) -> float:
    x = list(config.values())
    total = sum(100 * (x[at + 1] - x[at] ** 2) ** 2 + (1 - x[at]) ** 2 for at in range(4))
    return math.log10(1e-3 + total) + 3


def _ackley(config: Any) -> float:
    x = np.array(list(config.values())) - 7.3
    waves = np.exp(np.cos(2 * np.pi * x).mean())
    return float(20 + math.e - 20 * np.exp(-0.2 * np.sqrt((x**2).mean())) - waves)


def _branin(config: Any) -> float:
    x, y = config["x"], config["y"]
    valley = (y - 5.1 / (4 * math.pi**2) * x * x + 5 / math.pi * x - 6) ** 2
    return float(valley + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887)


_ONES: Final = Space(
    {f"word{number}": Categorical([0, 1]) for number in range(8)}
    | {f"chance{number}": Float(0, 1) for number in range(8)}
)


PROBLEMS: dict[str, tuple[Space, Callable[[Any], float]]] = {
    "hartmann6": (HARTMANN_6, hartmann_regret),
    "counting ones": (_ONES, lambda config: 1.0 - sum(config.values()) / 16),
    "branches": (_BRANCHES, _branches),
    "mixed": (_MIXED, _mixed),
    "rosenbrock, 5 dimensions, log10": (Space({f"x{at}": Float(-2, 2) for at in range(5)}), _rosenbrock),
    "ackley, 10 dimensions": (Space({f"x{at}": Float(-32, 32) for at in range(10)}), _ackley),
    "branin": (Space({"x": Float(-5, 10), "y": Float(0, 15)}), _branin),
}
"""A space and the regret of a config, by name."""


def regrets(name: str, problem: str, seed: int, workers: int = 1, trials: int = 200) -> list[float]:
    """Return the least regret after each trial."""
    space, regret = PROBLEMS[problem]
    searcher, rng = SEARCHERS[name](), np.random.default_rng(seed + 999)
    searcher.begin(space, seed=seed)
    running: list[tuple[float, int, Any]] = []
    clock, asked, best = 0.0, 0, math.inf
    so_far: list[float] = []
    while len(so_far) < trials:
        while len(running) < workers:
            asked += 1
            duration = 1.0 if workers == 1 else float(rng.uniform(0.5, 1.5))
            heapq.heappush(running, (clock + duration, asked, searcher.ask()))
        clock, _, config = heapq.heappop(running)
        loss = regret(config)
        searcher.on_result(config, 1, loss)
        best = min(best, loss)
        so_far.append(best)
    return so_far


def main(words: Sequence[str] | None = None) -> int:
    """Print a table."""
    asked = kit.parser(
        __doc__,
        seeds=16,
        workers=1,
        only=kit.Option("", "a part of the problem's name"),
        searchers=kit.Option(["random", "auto", "tpe", "gp", "cmaes"], choices=SEARCHERS),
    ).parse_args(words)
    print("| problem | searcher | 50 trials | 100 trials | 200 trials ± standard error | CPU ms a trial |")
    for problem in PROBLEMS:
        if asked.only not in problem:
            continue
        for name in asked.searchers:
            begin = process_time()
            found = np.array([regrets(name, problem, seed, asked.workers) for seed in range(asked.seeds)])
            cost = (process_time() - begin) / found.size * 1e3
            means, error = found.mean(0), found[:, -1].std(ddof=1) / math.sqrt(asked.seeds)
            cells = f"{means[49]:.4f} | {means[99]:.4f} | {means[199]:.4f} ± {error:.4f}"
            print(f"| {problem} | {name} | {cells} | {cost:.1f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
