"""``Asha``: asynchronous successive halving, in which no trial waits for others.

A rung compares the trials that have reached it so far. With *promotion* a trial pauses at each rung, and
continues when it is among the best 1/eta of the rung. With *stopping* it continues at once, or never.

Losses at the lowest rung may mislead, because curves cross. Once eight promoted trials have a loss at the
next rung too, and the two rungs rank them differently, new trials of *promotion* begin at the next rung.

Source: Li and others: A system for massively parallel hyperparameter tuning, MLSys 2020.
"""

from __future__ import annotations

from bisect import insort
from typing import TYPE_CHECKING, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.rungs import levels, mislead, quantile
from onlineauto.tune.schedulers.scheduler import Decision, ResumeFrom, Setting, State, Suggestion
from onlineauto.tune.spaces import Config

if TYPE_CHECKING:
    from onlineauto.tune.searchers.searcher import Searcher

_VARIANTS = ("promotion", "stopping")
_LATEST_PAIRS = 64
"""Number of latest promoted trials whose losses at two rungs are compared."""


class Asha(FifoScheduler):
    """Asynchronous successive halving.

    With `variant` "stopping" and `history` "start", a rung is what it was when the trial began.
    """

    name = "asha"
    STATE: ClassVar = {
        "levels": list[int],
        "_rungs": list[list[tuple[float, int]]],
        "_promoted": list[set[int]],
        "_configs": dict[int, Config],
        "_at": dict[int, int],
        "_pairs": list[tuple[float, float]],
        "_lowest": int,
    }

    def __init__(self, variant: str = "promotion", *, history: str = "now") -> None:
        if variant not in _VARIANTS:
            raise OptionError(f"variant = {variant!r} is unknown; valid are {', '.join(_VARIANTS)}")
        self.options = {"variant": variant} | self.history_option(history)
        self._promotes = variant == "promotion"
        if self._promotes and self.sees_start:
            raise OptionError("history = 'start' needs variant = 'stopping': a promotion is not a report")

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self.levels = levels(setting.min_resource, setting.max_resource, setting.eta)
        self._rungs: list[list[tuple[float, int]]] = [[] for _ in self.levels]
        self._promoted: list[set[int]] = [set() for _ in self.levels]
        self._configs: dict[int, Config] = {}
        self._at: dict[int, int] = {}
        self._pairs: list[tuple[float, float]] = []  # losses of trials at the lowest rung and the next one
        self._lowest = 0

    def extend(self, setting: Setting) -> None:
        """Add rungs above the highest one; trials that have reached the former highest rung have ended."""
        super().extend(setting)
        self._promoted[-1] |= {trial for _, trial in self._rungs[-1]}
        for level in levels(setting.min_resource, setting.max_resource, setting.eta):
            if level > self.levels[-1]:
                self.levels.append(level)
                self._rungs.append([])
                self._promoted.append(set())

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        searcher.lowest = self.levels[self._lowest]
        for rung in range(len(self.levels) - 2, -1, -1) if self._promotes else ():
            trial = self._promotable(rung)
            if trial is not None:
                self._promoted[rung].add(trial)
                self._at[trial] = rung + 1
                self._running.add(trial)
                came_from = ResumeFrom(trial, self.levels[rung])
                return Suggestion(trial, self._configs[trial], self.levels[rung + 1], came_from)
        job = super().suggest(searcher)
        if job is None:
            return None
        self._at[job.trial] = self._lowest
        if not self._promotes:
            return job
        self._configs[job.trial] = job.config
        return job._replace(resource=self.levels[self._lowest])

    def _promotable(self, rung: int) -> int | None:
        """Return the best trial among the best 1/eta of a rung that was not promoted yet, or None."""
        promoted = self._promoted[rung]
        best = self._rungs[rung][: len(self._rungs[rung]) // self.setting.eta]
        return next((trial for _, trial in best if trial not in promoted), None)

    def quantile(self, rung: int) -> float:
        """Return the loss that separates the best 1/eta of a rung from the others."""
        return quantile([loss for loss, _ in self._rungs[rung]], 1 / self.setting.eta)

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: D102
        if self._promotes:
            return Decision.STOP if resource >= self.levels[self._at[trial]] else Decision.CONTINUE
        if resource >= self.setting.max_resource:
            return Decision.STOP
        if not self._arrives(trial, resource, loss):
            return Decision.CONTINUE
        return Decision.CONTINUE if loss <= self.quantile(self._at[trial] - 1) else Decision.STOP

    def _arrives(self, trial: int, resource: int, loss: float) -> bool:
        """Record a trial at the highest rung that it has reached; return whether the rung is new to it."""
        rung = self._at[trial]
        while rung < len(self.levels) and self.levels[rung] <= resource:
            rung += 1
        if rung == self._at[trial]:
            return False
        insort(self._rungs[rung - 1], (loss, trial))
        self._at[trial] = rung
        return True

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        changed = super().on_result(trial, resource, loss)
        if self._promotes:
            rung = self._at[trial]
            if resource != self.levels[rung]:
                raise ValueError(
                    f"trial {trial} ended at {resource}, not at its rung's level {self.levels[rung]}"
                )
            insort(self._rungs[rung], (loss, trial))
            if rung == self._lowest + 1:
                self._compare_rungs(trial, loss)
            if rung < len(self.levels) - 1:
                return {trial: State.PAUSED}
        else:
            self._arrives(trial, resource, loss)
        self._forget(trial)
        return changed

    def _compare_rungs(self, trial: int, loss: float) -> None:
        """Begin new trials at the next rung if the lowest one misleads."""
        self._pairs += [(before, loss) for before, number in self._rungs[self._lowest] if number == trial]
        self._pairs = self._pairs[-_LATEST_PAIRS:]
        if self._lowest < len(self.levels) - 2 and mislead(self._pairs):
            self._lowest += 1
            self._pairs = []

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        self._forget(trial)
        return super().on_error(trial)

    def _forget(self, trial: int) -> None:
        self._configs.pop(trial, None)
        del self._at[trial]

    @property
    def is_done(self) -> bool:  # noqa: D102
        if not super().is_done:
            return False
        return not self._promotes or all(
            self._promotable(rung) is None for rung in range(len(self.levels) - 1)
        )
