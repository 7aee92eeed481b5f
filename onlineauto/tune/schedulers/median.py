"""``Median``: stop a trial whose average is worse than the median average of others at the same resource.

Source: Golovin and others: Google Vizier, 2017.
"""

from __future__ import annotations

from bisect import insort
from typing import ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.schedulers.fifo import FifoScheduler
from onlineauto.tune.schedulers.rungs import quantile
from onlineauto.tune.schedulers.scheduler import Decision, Setting, State


class Median(FifoScheduler):
    """Stops trials by the running average of their reported values.

    With `history` "start", a trial is compared with what others had reported when it began.
    """

    name = "median"
    STATE: ClassVar = {"_sums": dict[int, tuple[int, float]], "_averages": dict[int, list[float]]}

    def __init__(self, grace_population: int = 5, *, cutoff: float = 0.5, history: str = "now") -> None:
        if grace_population < 1 or not 0 < cutoff < 1:
            raise OptionError(
                f"grace_population = {grace_population}, cutoff = {cutoff}: "
                "valid are 1 or more, and a share between 0 and 1"
            )
        self.options = {"grace_population": grace_population, "cutoff": cutoff} | self.history_option(history)
        self._grace, self._cutoff = grace_population, cutoff

    def begin(self, setting: Setting) -> None:  # noqa: D102
        super().begin(setting)
        self._sums: dict[int, tuple[int, float]] = {}
        self._averages: dict[int, list[float]] = {}

    def on_report(self, trial: int, resource: int, loss: float) -> Decision:  # noqa: D102
        count, total = self._sums.get(trial, (0, 0.0))
        self._sums[trial] = count + 1, total + loss
        average = (total + loss) / (count + 1)
        others = self._averages.setdefault(resource, [])
        enough = resource >= self.setting.min_resource and len(others) >= self._grace
        stops = enough and average > quantile(others, self._cutoff)
        insort(others, average)
        return Decision.STOP if stops or resource >= self.setting.max_resource else Decision.CONTINUE

    def on_result(self, trial: int, resource: int, loss: float) -> dict[int, State]:  # noqa: D102
        self._sums.pop(trial, None)
        return super().on_result(trial, resource, loss)

    def on_error(self, trial: int) -> dict[int, State]:  # noqa: D102
        self._sums.pop(trial, None)
        return super().on_error(trial)
