"""``Budget``: ends a run when all trials together have learnt so many events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.tune.workers.stoppers import Stopper

if TYPE_CHECKING:
    from onlineauto.tune.study import Study
    from onlineauto.tune.trial import Trial


class Budget(Stopper):
    """Begins no job once a budget is spent; the jobs that run then come to their end.

    Parameters
    ----------
    study : Study
        The study.
    events : int
        The events that its trials may learn, all together.

    Raises
    ------
    OptionError
        It is not positive.
    """

    def __init__(self, study: Study, events: int) -> None:
        if events < 1:
            raise OptionError(f"budget = {events}: a positive number of events, for all trials together")
        self._study, self._events = study, events

    def ends_run(self) -> bool:
        """Return whether the budget is spent."""
        return spent(self._study) >= self._events


def spent(study: Study) -> int:
    """Return how many events all trials of a study have come through."""
    return sum(trial.step - _copied(trial) for trial in study.trials)


def _copied(trial: Trial) -> int:
    """Return the events that a trial has not learnt itself: it began as a copy of another one."""
    begun = trial.resume_from
    return min(begun.resource, trial.step) if begun is not None and begun.trial != trial.number else 0
