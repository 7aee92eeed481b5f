"""Runs of a tuner, ours or a peer, on an instance: what it has found after each part of the budget."""

from __future__ import annotations

import contextlib
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, Final

from onlineauto.tune.schedulers import SCHEDULERS, Setting
from onlineauto.tune.searchers import SEARCHERS
from onlineauto.tune.spaces import Categorical, Float, Int, Space

if TYPE_CHECKING:
    from collections.abc import Generator

    from bench.tune.suites.problems import Instance

    Tuner = Generator[tuple[list[Any], int, float], float | None]

PARTS: Final = 20
SINGLE: Final = 100
"""Number of trials where a loss has one level."""
MULTI: Final = 20
"""The budget where there are several levels, in trials at the highest one."""
OURS: Final[dict[str, tuple[str, str]]] = {
    "random": ("fifo", "random"),
    "auto": ("fifo", "auto"),
    "TPE: the default": ("fifo", "tpe"),
    "GP": ("fifo", "gp"),
    "CMA-ES": ("fifo", "cmaes"),
    "Hyperband, TPE: the default": ("hyperband", "tpe"),
    "ASHA, TPE": ("asha", "tpe"),
    "race, TPE": ("race", "tpe"),
    "Hyperband, random": ("hyperband", "random"),
    "our DEHB": ("dehb", "random"),
}
"""The scheduler and the searcher by the name of the tuner."""


@dataclass(frozen=True, slots=True)
class Run:
    """The regret after each part of the budget, and milliseconds of processor time for a job."""

    regrets: list[float]
    cost: float


class Peers:
    """A process of `peers.py` in an interpreter that has the peers."""

    def __init__(self, python: str) -> None:
        worker = Path(__file__).with_name("peers.py")
        words = ["env", "OMP_NUM_THREADS=1", python, "-P", "-W", "ignore", str(worker)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _exchange(self, request: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline() or "null")

    def tuner(self, who: str, instance: Instance, seed: int, trials: int) -> Tuner:
        """Return the jobs of a peer, each with the seconds of processor time until then."""
        answer = self._exchange(
            {
                "tuner": who,
                "space": instance.space,
                "seed": seed,
                "lowest": instance.lowest,
                "highest": instance.highest,
                "trials": trials,
            }
        )
        while answer is not None:
            loss = yield tuple(answer)
            if loss is None:
                self._process.stdin.write("null\n")  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
                return
            answer = self._exchange(loss)
        raise RuntimeError(f"{who} ended: its process says why")

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _ours(who: str, instance: Instance, seed: int) -> Tuner:
    names = [f"p{at:02}" for at in range(len(instance.space))]
    kinds = [
        Categorical([str(word) for word in range(int(high))])
        if kind == "words"
        else Float(low, high)
        if kind == "float"
        else Int(int(low), int(high))
        for kind, low, high in instance.space
    ]
    space = Space(dict(zip(names, kinds, strict=True)))
    scheduler, searcher = SCHEDULERS[OURS[who][0]](), SEARCHERS[OURS[who][1]]()
    before = process_time()
    searcher.begin(space, seed=seed)
    scheduler.begin(
        Setting(space=space, seed=seed, min_resource=instance.lowest, max_resource=instance.highest)
    )
    seconds = process_time() - before
    while True:
        before = process_time()
        job = scheduler.suggest(searcher)
        seconds += process_time() - before
        assert job is not None
        values = [job.config[name] for name in names]
        loss = yield [int(v) if isinstance(v, str) else v for v in values], job.resource, seconds
        if loss is None:
            return
        before = process_time()
        scheduler.on_result(job.trial, job.resource, loss)
        searcher.on_result(job.config, job.resource, loss)
        seconds += process_time() - before


def run(who: str, instance: Instance, seed: int, peers: Peers | None = None) -> Run:
    """Run a tuner until the budget is spent.

    A job costs the levels that its config has not reached before, and a repeated one costs all of them again:
    who can go on from a checkpoint does not pay twice. The regret is the true one of the config with the best
    loss at the highest level so far.
    """
    budget = SINGLE if instance.highest == 1 else MULTI * instance.highest
    trials = SINGLE if instance.highest == 1 else 100_000
    tuner = _ours(who, instance, seed) if peers is None else peers.tuner(who, instance, seed, trials)
    reached: dict[tuple[Any, ...], int] = {}
    best: tuple[int, float] = (0, 0.0)
    regret, spent, jobs = float("inf"), 0, 0
    regrets: list[float] = []
    config, level, seconds = next(tuner)
    while True:
        key = tuple(config)
        before = reached.get(key, 0)
        spent += level - before if level > before else level
        while len(regrets) < PARTS and spent > budget * (len(regrets) + 1) / PARTS:
            regrets.append(regret)
        if len(regrets) == PARTS:
            break
        reached[key] = max(level, before)
        loss = instance.loss(config, level)
        if (level, -loss) > best:
            best = level, -loss
            regret = instance.loss(config, instance.highest) - instance.optimum
        jobs += 1
        config, level, seconds = tuner.send(loss)
    with contextlib.suppress(StopIteration):
        tuner.send(None)  # the process of a peer is free for the next run
    return Run(regrets, seconds / (jobs + 1) * 1e3)
