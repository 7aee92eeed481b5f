"""``Budget``: ends a run when its trials together have learned a number of events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onlineauto.errors import OptionError
from onlineauto.tune.workers.stoppers import Stopper

if TYPE_CHECKING:
    from onlineauto.tune.study import Study
    from onlineauto.tune.trial import Trial


class Budget(Stopper):
    """Ends a run once a budget is spent; running jobs continue to their end."""

    def __init__(self, study: Study, events: int) -> None:
        if events < 1:
            raise OptionError(f"budget = {events}: give a positive number of events, for all trials together")
        self._study, self._events = study, events

    def ends_run(self) -> bool:
        """Return whether the budget is spent."""
        return used_resource(self._study) >= self._events


def used_resource(study: Study) -> int:
    """Return the number of events that all trials of a study have learned together."""
    return sum(trial.step - _copied_events(trial) for trial in study.trials)


def _copied_events(trial: Trial) -> int:
    """Return the number of events that a trial has not learned itself, because it began as a copy."""
    begun = trial.resume_from
    return min(begun.resource, trial.step) if begun is not None and begun.trial != trial.number else 0
