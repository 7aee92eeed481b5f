"""Runs of onlineauto over bandit logs: what it would have done, and how long it took."""

from __future__ import annotations

import ast
import time
from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.quality.logs import BanditLog, unlabelled
from onlineauto import Workspace
from onlineauto.options import Configuration
from onlineauto.workspace.options import REGISTRY

LEARNER: dict[str, Any] = {"cb_explore_adf": True, "epsilon": 0.1, "bit_precision": 20}
"""Options of every workspace."""

VW_FLAGS = ("--cb_explore_adf", "--epsilon", "0.1", "--cb_type", "mtr", "-b", "20", "--quiet")
"""The same for VW."""

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
    """The result of a learner on a log."""

    greedy: NDArray[np.int64]  # first action of the ranking of each event
    seconds: float  # of CPU
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
    return {"quadratic": [name + action for name in log.namespaces for action in log.action_namespaces]}


def best_products(log: BanditLog) -> Config:
    """Context by action, and the products that a search over prefixes of the log found best."""
    return {**context_by_action(log), "cubic": list(_PRODUCTS[log.set.removesuffix("-n")])}


def fixed_configs(log: BanditLog) -> dict[str, Config]:
    """Return the fixed configs that a search is compared with, except ``-q ::``."""
    linear = context_by_action(log)
    pairs = [a + b + z for a, b in combinations(log.namespaces, 2) for z in log.action_namespaces]
    found = {"ctxZ": linear, "cubics": {**linear, "cubic": pairs}}
    if log.set.removesuffix("-n") in _PRODUCTS:
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


def configured(**options: Any) -> Configuration:
    """Return the options of a workspace, `LEARNER` among them."""
    return REGISTRY.from_keywords(**LEARNER, **options)


def from_flags(flags: str) -> Configuration:
    """Return the options of a workspace from flags as on the command line, `LEARNER` among them."""
    return REGISTRY.parse(f"{configured().command()} {flags}")


def run_ours(path: Path, configuration: Configuration) -> Run:
    """Run onlineauto on a file."""
    begin = time.process_time()
    workspace = Workspace(configuration=configuration)
    greedy = [outcomes.action[outcomes.rows["action_start"]] for _, outcomes in workspace.stream(path)]
    seconds = time.process_time() - begin
    return Run(np.concatenate(greedy), seconds, workspace.searching.n_switches)


def run_best_mean_action(log: BanditLog) -> Run:
    """Run a learner without context: the action with the highest mean reward so far, weighted by propensity.

    Actions are told apart by the first namespace of their lines. Each mean begins at the mean of all actions,
    as if that had been one event.
    """
    begin = time.process_time()
    paid: defaultdict[bytes, float] = defaultdict(float)
    taken: defaultdict[bytes, float] = defaultdict(float)
    greedy = np.empty(len(log.events), np.int64)
    all_paid = all_taken = 0.0
    for event, text in enumerate(log.events):
        actions = [line.split(b"|", 2)[1].strip() for line in unlabelled(text).split(b"\n")[1:]]
        mean = all_paid / all_taken if all_taken else 0.0
        greedy[event] = np.argmax([(paid[action] + mean) / (taken[action] + 1) for action in actions])
        action, weight = actions[log.actions[event]], 1 / (len(actions) * log.probabilities[event])
        paid[action] += weight * log.observed[event]
        taken[action] += weight
        all_paid, all_taken = all_paid + weight * log.observed[event], all_taken + weight
    return Run(greedy, time.process_time() - begin)
