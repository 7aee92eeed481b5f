"""``ScheduledTrials``: the scheduler of a study, asked and notified with the study's numbers of trials.

The scheduler numbers its trials itself. Its numbers are those of the study until a record of the log is lost.
From then on, a trial whose beginning was lost is unknown to both. A trial that the scheduler would not have
begun, or resumed, without the lost record continues without the scheduler.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from onlineauto.tune.schedulers import Decision, ResumeFrom, State, Suggestion

if TYPE_CHECKING:
    from collections.abc import Mapping

    from onlineauto.tune.schedulers import Scheduler
    from onlineauto.tune.searchers import Searcher
    from onlineauto.tune.store import Record
    from onlineauto.tune.trial import Trial


class ScheduledTrials:
    """Trials as a scheduler knows them."""

    def __init__(self, scheduler: Scheduler, searcher: Searcher, trials: Mapping[int, Trial]) -> None:
        self._scheduler, self._searcher, self._trials = scheduler, searcher, trials
        self.has_gaps = self.dropped = False
        self._theirs: dict[int, int] = {}
        self._ours: dict[int, int] = {}
        self._suggested = 0  # the scheduler's number of the trial that it suggested last
        self._least_new = 0  # no trial from this number on has begun

    def note_gap(self) -> None:
        """Note that a record was lost, which may have begun a trial."""
        if not self.has_gaps:
            self.has_gaps = True
            self._theirs = {trial: trial for trial in self._trials}
            self._ours = dict(self._theirs)
        self._least_new = 1 + max([self._least_new, *self._trials])

    def knows(self, trial: int) -> bool:
        """Return whether the scheduler knows a trial."""
        return not self.has_gaps or trial in self._theirs

    def suggest(self) -> Suggestion | None:
        """Return the next job, or None."""
        self.dropped = False
        while (suggested := self._scheduler.suggest(self._searcher)) is not None and self.has_gaps:
            known = self._trials.get(self._ours.get(suggested.trial, -1))
            if known is not None and known.state in (State.RUNNING, State.ERRORED):
                self._scheduler.on_error(suggested.trial)  # it has continued without the scheduler
                self.dropped = True
                continue
            self._suggested = suggested.trial
            number = max([self._least_new - 1, *self._trials]) + 1 if known is None else known.number
            return suggested._replace(trial=number, resume_from=self._checkpoint(suggested.resume_from))
        return suggested

    def begin(self, trial: int) -> None:
        """Note that the last suggestion was followed by the job of a trial."""
        if self.has_gaps:
            self._theirs[trial], self._ours[self._suggested] = self._suggested, trial

    def repeat(self, record: Record, version: int) -> None:
        """Repeat the suggestion that led to an ``asked`` record."""
        if self.has_gaps:
            self._repeat_after_gap(record)
            return
        suggestion = self._suggest_again(record)
        if suggestion is None or (suggestion.trial, suggestion.resource) != (
            record["trial"],
            record["resource"],
        ):
            raise ValueError(
                f"record {version} is about trial {record['trial']} at {record['resource']}, and "
                f"the scheduler suggests {suggestion}: it is not the one that wrote this log"
            )

    def repeat_nothing(self) -> None:
        """Repeat a request for which there was no job."""
        before = self._states() if self.has_gaps else None
        try:
            with self._searcher.repeating(None):
                suggested = self.suggest()
            if suggested is not None:
                raise ValueError(f"the scheduler has a job: {suggested}")
        except ValueError:
            if before is None:
                raise
            self._restore(*before)

    def _suggest_again(self, record: Record) -> Suggestion | None:
        known = dict(record["config"]) if record["trial"] not in self._trials else None
        with self._searcher.repeating(known):
            return self.suggest()

    def _repeat_after_gap(self, record: Record) -> None:
        """Repeat a suggestion; if there is another one, continue the trial without the scheduler."""
        number, trial = record["trial"], self._trials.get(record["trial"])
        origin = None if record["resume_from"] is None else ResumeFrom(*record["resume_from"])
        expected = record["resource"], origin
        job = None if trial is None else (trial.job_resource, trial.resume_from)
        if trial is not None and trial.state is State.RUNNING and job == expected:
            return  # the record that its process was lost is missing
        before = self._states()
        try:
            suggestion = self._suggest_again(record)
        except ValueError:  # the searcher has a config for a new trial
            suggestion = None
        if suggestion is not None and (suggestion.resource, suggestion.resume_from) == expected:
            fits = suggestion.trial not in self._trials if trial is None else suggestion.trial == number
            if fits:
                self.begin(number)
                return
        self._restore(*before)
        if trial is None:
            self._searcher.take(record["config"])
            return
        their_number = self._theirs.pop(number, None)
        if their_number is not None and trial.state is State.RUNNING:
            self._scheduler.on_error(their_number)  # the end of its last job is lost

    def _states(self) -> list[Any]:
        """Return copies of the states of the scheduler and the searcher, for `_restore`."""
        states = [self._scheduler.state_dict(), self._searcher.state_dict()]
        copies: list[Any] = json.loads(json.dumps(states))
        return copies

    def _restore(self, scheduler: Mapping[str, Any], searcher: Mapping[str, Any]) -> None:
        limit, setting = self._searcher.limit, self._scheduler.setting
        self._searcher.begin(setting.space, seed=setting.seed)
        self._searcher.limit = limit
        self._searcher.load_state_dict(searcher)
        self._scheduler.begin(setting)
        self._scheduler.load_state_dict(scheduler)

    def on_report(
        self, trial: int, resource: int, loss: float, details: Mapping[str, Any] | None
    ) -> Decision:
        """Pass an intermediate loss to the scheduler, and return whether the trial continues."""
        their_number = self._number(trial)
        if their_number is None:
            return Decision.CONTINUE
        if details is not None:
            self._scheduler.on_details(their_number, details)
        return self._scheduler.on_report(their_number, resource, loss)

    def on_result(
        self, trial: int, resource: int, loss: float, details: Mapping[str, Any] | None
    ) -> dict[int, State]:
        """Pass the final loss of a job to the scheduler, and return the new states of trials."""
        their_number = self._number(trial)
        if their_number is None:
            return {trial: State.TERMINATED}
        if details is not None:
            self._scheduler.on_details(their_number, details)
        return self._changed(self._scheduler.on_result(their_number, resource, loss))

    def on_error(self, trial: int) -> dict[int, State]:
        """Report a failed job to the scheduler, and return the new states of other trials."""
        their_number = self._number(trial)
        return {} if their_number is None else self._changed(self._scheduler.on_error(their_number))

    def resumable(self) -> list[ResumeFrom]:
        """Return the checkpoints, of trials that are not paused, from which later jobs may begin."""
        return [
            found for each in self._scheduler.resumable() if (found := self._checkpoint(each)) is not None
        ]

    def _number(self, trial: int) -> int | None:
        return self._theirs.get(trial) if self.has_gaps else trial

    def _checkpoint(self, resume_from: ResumeFrom | None) -> ResumeFrom | None:
        if resume_from is None or not self.has_gaps:
            return resume_from
        return ResumeFrom(self._ours.get(resume_from.trial, resume_from.trial), resume_from.resource)

    def _changed(self, changed: dict[int, State]) -> dict[int, State]:
        if not self.has_gaps:
            return changed
        changed_here = {self._ours[their_number]: state for their_number, state in changed.items()}
        return {trial: state for trial, state in changed_here.items() if trial in self._theirs}

    def state_dict(self) -> dict[str, Any] | None:
        """Return the numbers of trials as plain JSON; None if the log has no gaps."""
        if not self.has_gaps:
            return None
        pairs = {"theirs": self._theirs, "ours": self._ours}
        numbers = {name: {str(one): other for one, other in each.items()} for name, each in pairs.items()}
        return {**numbers, "least_new": self._least_new}

    def load_state_dict(self, state: Mapping[str, Any] | None, trials: Mapping[int, Trial]) -> None:
        """Restore the numbers of trials."""
        self._trials = trials
        self.has_gaps = state is not None
        if state is not None:
            self._theirs = {int(one): other for one, other in state["theirs"].items()}
            self._ours = {int(one): other for one, other in state["ours"].items()}
            self._least_new = state["least_new"]
