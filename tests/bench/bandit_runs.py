"""Runs over bandit logs, of onlineauto and of the wheel: what each would have done, and how long it took."""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from tests.bench.bandit_logs import BanditLog
    from tests.bench.speed_workers import Worker

__all__ = [
    "LEARNER",
    "WHEEL_FLAGS",
    "Config",
    "Run",
    "Spread",
    "best_products",
    "context_by_action",
    "fixed_configs",
    "option",
    "run_ours",
    "run_wheel",
    "spread",
]

LEARNER: dict[str, Any] = {"cb_explore_adf": True, "epsilon": 0.1, "bit_precision": 20}
"""Options of every workspace."""

WHEEL_FLAGS = ("--cb_explore_adf", "--epsilon", "0.1", "--cb_type", "mtr", "-b", "20", "--quiet")
"""The same for the wheel."""

Config = dict[str, Any]
"""Options that fix the interactions."""

_PRODUCTS: dict[str, tuple[str, ...]] = {
    "penbased": ("chZ", "ahZ", "ehZ"),
    "surveys": ("swZ", "hwZ"),
    "flights": ("otZ", "taZ", "tmZ", "odZ"),
    "planted": ("abZ", "cdZ"),
    "diamonds": ("lxZ", "clZ"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a learner did on a log."""

    greedy: NDArray[np.int64]  # first action of the ranking of each event
    microseconds: float  # an event, reading included
    changes: int | None = None  # of champion, if known


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and range."""

    median: float
    low: float
    high: float


def spread(values: list[float]) -> Spread:
    """Median and range of some values."""
    return Spread(float(np.median(values)), min(values), max(values))


def context_by_action(log: BanditLog) -> Config:
    """Each namespace of the context with the action."""
    return {"quadratic": [f"{name}Z" for name in log.namespaces]}


def best_products(log: BanditLog) -> Config:
    """Context by action, and the products that a search over prefixes of the log found best."""
    return {**context_by_action(log), "cubic": list(_PRODUCTS[log.set])}


def fixed_configs(log: BanditLog) -> dict[str, Config]:
    """What a search may be compared with, but for ``-q ::``."""
    linear = context_by_action(log)
    pairs = [f"{a}{b}Z" for a, b in combinations(log.namespaces, 2)]
    found = {"ctxZ": linear, "cubics": {**linear, "cubic": pairs}}
    if log.set in _PRODUCTS:
        found["products"] = best_products(log)
    if log.set == "planted":
        found["planted"] = {"quadratic": ["eZ"], "cubic": ["abZ", "cdZ"]}
    return found


def option(text: str) -> tuple[str, Any]:
    """Parse NAME=VALUE; a value that is no Python literal is a string."""
    name, _, value = text.partition("=")
    try:
        return name, ast.literal_eval(value)
    except (SyntaxError, ValueError):
        return name, value


def run_ours(path: Path, **options: Any) -> Run:
    """Let onlineauto learn a file."""
    workspace = Workspace(**LEARNER, **options)
    begin = time.perf_counter()
    greedy = [outcomes.action[outcomes.rows["action_start"]] for _, outcomes in workspace.stream(path)]
    seconds = time.perf_counter() - begin
    events = sum(map(len, greedy))
    return Run(np.concatenate(greedy), seconds / events * 1e6, workspace.searching.n_switches)


def run_wheel(path: Path, worker: Worker, *, flags: tuple[str, ...]) -> Run:
    """Let the wheel learn a file."""
    printed = path.with_suffix(".predictions")
    argv = [*WHEEL_FLAGS, *flags, "-d", path.name, "-p", printed.name]
    seconds = worker.ask(argv=argv, directory=str(path.parent))["seconds"]
    lines = filter(None, printed.read_text().splitlines())
    greedy = np.array([int(line.partition(":")[0]) for line in lines], np.int64)
    return Run(greedy, seconds / len(greedy) * 1e6)
