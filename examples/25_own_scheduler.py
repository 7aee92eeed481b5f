"""Tune in a way of your own: write a scheduler and a searcher, test them with the suites, and use them.

The scheduler is successive halving: `n_trials` trials begin, and at each rung the best 1 / eta of them
continue. The searcher shrinks its step around the best config with each result. Both use no clock, no files
and no threads, and their state is plain JSON, so that every worker of a study computes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.testing import check_scheduler, check_searcher
from onlineauto.tune import Float, ResumeFrom, Scheduler, Searcher, Setting, Space, State, Study, Suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

Config = dict[str, Any]


class Halving(Scheduler):
    """Synchronous successive halving of one group of trials."""

    name = "halving"
    ends = True

    def __init__(self, n_trials: int = 9) -> None:
        self.options = {"n_trials": n_trials}
        self._n_trials = n_trials

    def begin(self, setting: Setting) -> None:
        super().begin(setting)
        self._configs: list[Config] = []
        self._level = setting.min_resource
        self._waiting: list[int] = []  # promoted trials, which continue from their checkpoint
        self._running: set[int] = set()
        self._losses: dict[int, float] = {}  # of the current rung
        self._is_full = False  # True once no new trial begins

    def suggest(self, searcher: Searcher) -> Suggestion | None:
        if self._waiting:
            trial = self._waiting.pop(0)
            self._running.add(trial)
            checkpoint = ResumeFrom(trial, self._level // self.setting.eta)
            return Suggestion(trial, self._configs[trial], self._level, checkpoint)
        config = None if self._is_full else searcher.ask()
        if config is None:
            self._is_full = True
            return None
        trial = len(self._configs)
        self._configs.append(config)
        self._running.add(trial)
        self._is_full = len(self._configs) == self._n_trials
        return Suggestion(trial, config, self._level)

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:
        self._losses[trial] = loss
        return self._end_job(trial)

    def on_error(self, trial: int) -> dict[int, State]:
        return self._end_job(trial)

    def _end_job(self, trial: int) -> dict[int, State]:
        """Return the new states of trials; the last job of a rung promotes the best of it."""
        self._running.remove(trial)
        states = {trial: State.PAUSED} if trial in self._losses else {}
        if self._running or self._waiting or not self._is_full:
            return states
        best = sorted(self._losses, key=lambda rival: self._losses[rival])
        n_promoted = len(best) // self.setting.eta
        if self._level * self.setting.eta > self.setting.max_resource:
            n_promoted = 0
        self._waiting = best[:n_promoted]
        states |= dict.fromkeys(best[n_promoted:], State.TERMINATED)
        self._level *= self.setting.eta
        self._losses.clear()
        return states

    @property
    def is_done(self) -> bool:
        return self._is_full and not self._running and not self._waiting

    def state_dict(self) -> dict[str, Any]:
        return {
            "configs": list(self._configs),
            "level": self._level,
            "waiting": list(self._waiting),
            "running": sorted(self._running),
            "losses": list(self._losses.items()),
            "is_full": self._is_full,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._configs, self._level = list(state["configs"]), state["level"]
        self._waiting, self._running = list(state["waiting"]), set(state["running"])
        self._losses, self._is_full = dict(state["losses"]), state["is_full"]


class Shrinking(Searcher):
    """Proposes configs around the best one, at steps that shrink with each result."""

    name = "shrinking"

    def begin(self, space: Space, *, seed: int) -> None:
        super().begin(space, seed=seed)
        self._best: Config | None = None
        self._loss = np.inf
        self._step = 0.5

    def propose(self, number: int, rng: np.random.Generator) -> Config | None:
        if self._best is None:
            return self.space.decode(rng.random(self.space.width))
        code = np.asarray(self.space.encode(self._best))
        return self.space.decode(np.clip(code + self._step * (rng.random(code.size) - 0.5), 0, 1))

    def on_result(self, config: Config, resource: int, loss: float) -> None:
        self._step *= 0.9
        if loss < self._loss:
            self._best, self._loss = config, loss

    def remember(self) -> dict[str, Any]:
        return {"best": self._best, "loss": self._loss, "step": self._step}

    def recall(self, state: Mapping[str, Any]) -> None:
        self._best, self._loss, self._step = state["best"], state["loss"], state["step"]


def score(config: Config, resource: int) -> float:
    """Return a made-up loss after `resource` epochs."""
    rate = config["rate"]
    assert isinstance(rate, float)
    return abs(rate - 0.3) + 1 / resource


check_scheduler(Halving)
check_searcher(Shrinking)
study = Study({"rate": Float(0, 1)}, Halving(9), Shrinking(), min_resource=1, max_resource=9, seed=1)
best = study.run(score)
assert best is not None
print("trials by resource:", sorted(trial.resource for trial in study.trials))
print(f"best rate {best.config['rate']:.2f} at resource {best.resource}")
