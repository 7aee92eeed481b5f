"""``FifoScheduler``: every trial gets the maximum resource, in the order of the searcher."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from onlineauto.tune.plain import PlainState
from onlineauto.tune.schedulers.scheduler import Scheduler, Setting, State, Suggestion

if TYPE_CHECKING:
    from onlineauto.tune.searchers.searcher import Searcher


class FifoScheduler(PlainState, Scheduler):
    """Runs each trial to the end. Base class of schedulers that stop some trials early."""

    name = "fifo"
    STATE: ClassVar = {"_trials": int, "_running": set[int], "_exhausted": bool}

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._trials = 0
        self._running: set[int] = set()
        self._exhausted = False

    def extend(self, setting: Setting) -> None:  # noqa: D102
        self.setting = setting
        self._exhausted = False

    def suggest(self, searcher: Searcher) -> Suggestion | None:  # noqa: D102
        config = None if self._exhausted else searcher.ask()
        if config is None:
            self._exhausted = True
            return None
        trial = self._trials
        self._trials += 1
        self._running.add(trial)
        return Suggestion(trial, config, self.setting.max_resource)

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: ARG002, D102
        self._running.remove(trial)
        return {trial: State.TERMINATED}

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        self._running.remove(trial)
        return {}

    @property
    def is_done(self) -> bool:  # noqa: D102
        return self._exhausted and not self._running
