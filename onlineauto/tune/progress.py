"""``Progress``: the state of a study after some records. It decides on new records and applies existing ones.

The same records in the same order give the same state. A config in the log is used as it is, so a searcher
proposes only in the process that claims the job.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from math import inf, isnan
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError
from onlineauto.tune.plain import PlainState
from onlineauto.tune.record_checks import SkippedRecord, UnfitRecord, check_record
from onlineauto.tune.schedulers import Decision, ResumeFrom, Scheduler, State
from onlineauto.tune.schedulers.scheduler import UNKNOWN, Available, WaitingTrial
from onlineauto.tune.searchers import Searcher
from onlineauto.tune.searchers.open_searcher import OpenSearcher
from onlineauto.tune.searchers.outcome import VALUE, losses_of
from onlineauto.tune.spaces import Config, Space
from onlineauto.tune.trial import Trial, may_become

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from onlineauto.tune.schedulers import Suggestion
    from onlineauto.tune.store import Record
    from onlineauto.tune.trial import Job

_LOG = logging.getLogger("onlineauto")
_MAY_END = ("told", "failed", "idle")
"""Kinds of records after which a study may be done."""
TRIES = 3
"""Number of processes that a trial may lose without progress before it fails."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposal that was made from the first `n_trials` trials of a study, while its log was not locked."""

    config: Config
    n_trials: int
    seconds: float

    def is_taken(self, progress: Progress) -> bool:
        """Return whether another trial began with this config since the proposal was made."""
        later = range(self.n_trials, len(progress.trials))
        return any(progress.trials[number].config == self.config for number in later)


class Progress(PlainState):
    """The trials of a study, with its scheduler and searcher."""

    STATE: ClassVar = {
        "version": int,
        "trainable": str | None,
        "scheduler": Scheduler,
        "searcher": Searcher,
        "_waiting": list[int],
        "_stopped": dict[int, int],
        "trials": dict[int, Trial],
        "added": dict[int, Trial],
        "_extended": bool,
        "_losses": dict[int, tuple[int, int]],
        "_owners": dict[int, str],
        "_unfinished": dict[int, int],
        "skipped": list[SkippedRecord],
        "user_attrs": dict[str, Any],
        "metric_names": list[str] | None,
        "_enqueued_attrs": list[tuple[Config, dict[str, Any]]],
    }

    def __init__(
        self, scheduler: Scheduler, searcher: Searcher, *, objectives: Mapping[str, float], retries: int
    ) -> None:
        self.scheduler, self.searcher = scheduler, searcher
        self._reorders = type(scheduler).choose is not Scheduler.choose
        self.version = 0
        self.trials: dict[int, Trial] = {}
        self.added: dict[int, Trial] = {}
        self.trainable: str | None = None
        self.skipped: list[SkippedRecord] = []
        self.user_attrs: dict[str, Any] = {}
        self.metric_names: list[str] | None = None
        self._enqueued_attrs: list[tuple[Config, dict[str, Any]]] = []
        self.objectives, self._sign, self._retries = objectives, next(iter(objectives.values())), retries
        self._waiting: list[int] = []
        self._stopped: dict[int, int] = {}
        self._ended: set[int] = set()
        self._best: tuple[bool, int, float, int] | None = None
        self._decided: Record | None = None
        self._losses: dict[int, tuple[int, int]] = {}  # by trial: lost processes in a row, and the last step
        self._owners: dict[int, str] = {}
        self._unfinished: dict[int, int] = {}  # by trial: the attempt whose last record was skipped
        self._lapsed: set[int] = set()
        self._starts: dict[int, Scheduler] = {}  # by running trial: the scheduler as the trial sees it
        self._extended = False
        self._searcher_failed = False
        self._apply: Mapping[str, Callable[[Record], None]] = {
            "study": self._apply_study,
            "extended": self._extend,
            "enqueued": self._enqueued,
            "added": self._added,
            "named": self._named,
            "noted": self._noted,
            "asked": self._apply_asked,
            "reported": self._reported,
            "told": self._apply_told,
            "failed": self._failed,
            "expired": self._expired,
            "released": self._released,
            "idle": self._idle,
        }

    @property
    def best(self) -> int | None:
        """The number of the incumbent: the feasible trial with the best value at the largest resource."""
        return None if self._best is None else self._best[-1]

    @property
    def has_waiting(self) -> bool:
        """True if the job of a trial waits for a process."""
        return bool(self._waiting)

    @property
    def is_done(self) -> bool:
        """True if there is no job now, and there will never be one."""
        return not self._waiting and self.scheduler.is_done

    def decide(self, owner: str, draft: Draft | None = None, available: Available = UNKNOWN) -> Record | None:
        """Return the next record (``asked``, ``idle`` or ``failed``) or None; the caller must `apply` it.

        If the scheduler asks for a proposal and there is a `draft`, the searcher is not called.
        """
        waiting = self._choose([self.trials[number] for number in self._waiting], available)
        if waiting is not None:
            return self._decide_waiting(self.trials[self._waiting[waiting]], owner)
        refusals = self.searcher.refusals
        self.searcher.draft = None if draft is None else draft.config
        self.searcher.first = self._choose(self.enqueued() if self._reorders else [], available) or 0
        try:
            suggested = self.scheduler.suggest(self.searcher)
        finally:
            self.searcher.draft, self.searcher.first = None, 0
        if suggested is None:
            changed = self.searcher.refusals > refusals
            if self._waiting and not changed:
                return self._decide_waiting(self.trials[self._waiting[0]], owner)
            self._decided = self._idle_record(refusals) if changed else None
            return self._decided
        earlier = self.trials.get(suggested.trial)
        attempt = 0 if earlier is None else earlier.attempt + 1
        trial_number, config, resource, came_from = suggested
        try:
            if earlier is None:
                self.scheduler.setting.space.check(config)
        except OptionError as error:
            raise OptionError(
                f"scheduler {self.scheduler.name!r} suggested trial {trial_number} with {config!r}, which is "
                f"not in the space: {error}"
            ) from error
        self._decided = _job_record(trial_number, attempt, owner, config, resource, came_from)
        check_record(self._decided, self.trials)
        return self._decided

    def _decide_waiting(self, trial: Trial, owner: str) -> Record:
        """Return the record that claims a waiting job, or fails a trial that was lost too often."""
        times, step = self._losses.get(trial.number, (0, 0))
        if times >= TRIES:
            reason = f"its process was lost {times} times after step {step}; it is not tried again"
            return _failed_record(trial, reason)
        self._decided = _next_attempt(trial, owner)
        return self._decided

    def _choose(self, queue: Sequence[Trial], available: Available) -> int | None:
        """Return the index of the trial of a queue that the scheduler prefers, or None."""
        scheduler = self.scheduler
        if not queue or not self._reorders:
            return 0 if queue else None
        waiting = [
            WaitingTrial(trial.number, trial.config, trial.job_resource, available.needed(trial.config))
            for trial in queue
        ]
        index = scheduler.choose(waiting, available.free())
        if index is not None and (type(index) is not int or not 0 <= index < len(queue)):
            raise OptionError(
                f"scheduler {scheduler.name!r} chose {index!r} of {len(queue)} waiting trials: return an "
                f"index from 0 to {len(queue) - 1}, or None"
            )
        return index

    def enqueued(self) -> list[Trial]:
        """Return the enqueued configs as trials, numbered as if they began next, in this order."""
        return [
            Trial(number, dict(config), State.PENDING, attempt=-1)
            for number, config in enumerate(self.searcher.queued, len(self.trials))
        ]

    def reclaimed(self, job: Job, owner: str) -> Record | None:
        """Return the record that claims a job whose lease has expired; None if the job has a new owner."""
        trial = self.trials.get(job.trial)
        if trial is None or trial.attempt != job.attempt or job.trial not in self._lapsed:
            return None
        return _next_attempt(trial, owner)

    @property
    def unfinished(self) -> dict[int, tuple[int, str]]:
        """Running trials whose job has ended in a skipped record: the attempt and its owner."""
        return {
            trial: (attempt, self._owners.get(trial, ""))
            for trial, attempt in self._unfinished.items()
            if self.trials[trial].state is State.RUNNING and self.trials[trial].attempt == attempt
        }

    def end_unfinished(self, trial: int) -> Record:
        """Return the record by which an unfinished job fails."""
        reason = [record.why for record in self.skipped if record.kind in ("told", "failed")][-1]
        return _failed_record(self.trials[trial], f"its value could not be applied: {reason}")

    def skip(self, record: Record, why: str) -> None:
        """Count a record that cannot be applied, and change nothing else."""
        kind = str(record.get("kind"))
        self.version += 1
        self.skipped.append(SkippedRecord(self.version, kind, why))
        trial = self.trials.get(record["trial"]) if isinstance(record.get("trial"), int) else None
        if trial is None or trial.attempt != record.get("attempt"):
            return
        if kind == "told" and trial.state is State.RUNNING:
            self._unfinished[trial.number] = trial.attempt
        elif (
            kind == "failed" and isinstance(record.get("why"), str) and isinstance(record.get("final"), bool)
        ):
            if trial.state not in (State.RUNNING, State.PENDING):
                return
            self._unfinished.pop(trial.number, None)  # the scheduler raised an error
            self._set_state(trial.number, State.ERRORED)
            if trial.number in self._waiting:
                self._waiting.remove(trial.number)

    def apply(self, record: Record) -> None:
        """Change the state by one more record."""
        if not isinstance(record.get("kind"), str) or record["kind"] not in self._apply:
            raise UnfitRecord(f"its kind {record.get('kind')!r} is unknown")
        check_record(record, self.trials, objectives=self.objectives)
        self._apply[record["kind"]](record)
        if record["kind"] in ("told", "failed", "expired", "released"):
            self._unfinished.pop(record["trial"], None)
            self._owners.pop(record["trial"], None)
        self.version += 1
        if record["kind"] in _MAY_END and self.is_done:  # paused trials will not be resumed
            for trial in self.trials.values():
                if trial.state is State.PAUSED:
                    self._set_state(trial.number, State.TERMINATED)

    def decision(self, trial: int) -> Decision:
        """Return whether the job of a trial continues after its last report."""
        return Decision.STOP if trial in self._stopped else Decision.CONTINUE

    def resource_at_end(self, job: Job) -> int:
        """Return the resource of a job that ends now: the step at which it stopped, or its own resource."""
        return min(self._stopped.get(job.trial, job.resource), job.resource)

    def completed_step(self, trial: int) -> int:
        """Return the last step that need not be repeated.

        The step at which a trial stops is repeated, because its value has to be recorded.
        """
        step = self.trials[trial].step
        return min(step, self._stopped.get(trial, step + 1) - 1)

    def needed(self, trial: int) -> set[int]:
        """Return the resources of a trial's checkpoints from which other jobs may begin."""
        active = [self.trials[number] for number in {*self._owners, *self._waiting}]
        origins = [job.resume_from for job in active if job.state in (State.RUNNING, State.PENDING)]
        beginnings = [*self.scheduler.resumable(), *origins]
        return {origin.resource for origin in beginnings if origin is not None and origin.trial == trial}

    def disposable(self) -> list[int]:
        """Return the trials, each once, that ended early and whose checkpoints no job needs."""
        most = self.scheduler.setting.max_resource
        self._ended -= {number for number in self._ended if self.trials[number].resource >= most}
        unneeded = [number for number in self._ended if number != self.best and not self.needed(number)]
        self._ended -= set(unneeded)
        return sorted(unneeded)

    def _apply_study(self, record: Record) -> None:
        if self.version:
            raise UnfitRecord(f"a {record['kind']!r} record is the first of a log, and only that")

    def _extend(self, record: Record) -> None:
        limit, resource = record["max_trials"], record["max_resource"]
        before, setting = self.searcher.limit, self.scheduler.setting
        if (before is not None and (limit or inf) < before) or resource < setting.max_resource:
            raise UnfitRecord(f"max_trials = {limit!r}, max_resource = {resource!r}: a study may only grow")
        if before is None and limit is not None:
            raise UnfitRecord(f"max_trials = {limit!r}: the study has no such limit, and may only grow")
        try:
            self.scheduler.extend(replace(setting, max_resource=resource))
        except OptionError as error:
            raise UnfitRecord(str(error)) from error
        self.searcher.limit = limit
        self._extended = True

    def _idle_record(self, refusals: int) -> Record:
        """Return the ``idle`` record for the current number of trials and the given number of refusals."""
        return {"kind": "idle", "trials": len(self.trials), "refusals": refusals}

    def _idle(self, record: Record) -> None:
        if record != self._decided:
            expected = self._idle_record(self.searcher.refusals)
            if record != expected:
                raise UnfitRecord(f"it says {record}, and here it would be {expected}")
            if (suggestion := self._suggest_again(None)) is not None:
                raise ValueError(f"the scheduler has a job: {suggestion}")
        self._decided = None

    def _suggest_again(self, config: Mapping[str, Any] | None) -> Suggestion | None:
        """Repeat the request that led to a record; the searcher proposes the config of the record."""
        with self.searcher.repeating(None if config is None else dict(config)):
            return self.scheduler.suggest(self.searcher)

    def _repeat(self, record: Record) -> None:
        """Repeat the suggestion that led to an ``asked`` record."""
        number, resource = record["trial"], record["resource"]
        suggestion = self._suggest_again(None if number in self.trials else record["config"])
        if suggestion is None or (suggestion.trial, suggestion.resource) != (number, resource):
            raise ValueError(
                f"record {self.version + 1} has trial {number} at {resource}, and the scheduler suggests "
                f"{suggestion}: it is not the one that wrote this log"
            )

    def _enqueued(self, record: Record) -> None:
        try:
            config = self.scheduler.setting.space.check(record["config"])
        except OptionError as error:
            raise UnfitRecord(str(error)) from error
        self.searcher.enqueue(config)
        self._enqueued_attrs.append((config, record.get("user_attrs") or {}))
        over = self.is_done
        if self.searcher.left >= 0:
            self.scheduler.extend(self.scheduler.setting)  # the config needs a job when the others have ended
            self._extended = self._extended or over

    def _added(self, record: Record) -> None:
        try:
            configs = [self.scheduler.setting.space.check(row["config"]) for row in record["trials"]]
        except OptionError as error:
            raise UnfitRecord(str(error)) from error
        for config, row in zip(configs, record["trials"], strict=True):
            number, resource, value = -1 - len(self.added), row["resource"], row["value"]
            config = self.searcher.fitted(config) if isinstance(self.searcher, OpenSearcher) else config
            trial = Trial(number, config, State.TERMINATED, job_resource=resource, values={resource: value})
            self.added[number] = trial
            self._note_best(trial)
            self._notify(self.searcher.on_ask, config)
            self._notify(self.searcher.on_result, config, resource, self._sign * value)

    def _suggested(self, record: Record) -> None:
        """Give a trial the config that its objective has suggested, if that is not the proposed one."""
        suggested, trial = record.get("suggested"), self.trials[record["trial"]]
        if suggested and isinstance(self.searcher, OpenSearcher):
            config, declared = dict(suggested["config"]), suggested["parameters"]
            self.searcher.on_suggested(trial.config, config, Space(declared).parameters if declared else {})
            trial.config = config
            for added in self.added.values() if declared else ():
                added.config = self.searcher.fitted(added.config)

    def _named(self, record: Record) -> None:
        self.trainable = record["trainable"]

    def _noted(self, record: Record) -> None:
        owner = self if record["trial"] is None else self.trials[record["trial"]]
        owner.user_attrs |= record["user_attrs"]
        self.metric_names = record.get("metric_names", self.metric_names)

    def _apply_asked(self, record: Record) -> None:
        number = record["trial"]
        self._lapsed.discard(number)
        if number in self._waiting:
            self._waiting.remove(number)
        elif record != self._decided:
            self._repeat(record)
        self._decided = None
        if number in self.trials:
            if self._extended and self.trials[number].state is State.TERMINATED:
                self.trials[number].state = State.PAUSED  # as it was when the study ended
                self._ended.discard(number)
            self._set_state(number, State.RUNNING)
        else:
            self.trials[number] = Trial(number, dict(record["config"]))
            if self.scheduler.sees_start:
                self._starts[number] = self._scheduler_with(self.scheduler.state_dict())
            row = next((row for row in self._enqueued_attrs if row[0] == record["config"]), None)
            if row is not None:
                self._enqueued_attrs.remove(row)
                self.trials[number].user_attrs = dict(row[1])
        trial = self.trials[number]
        came_from = record["resume_from"]
        trial.attempt, trial.job_resource = record["attempt"], record["resource"]
        trial.resume_from = None if came_from is None else ResumeFrom(*came_from)
        self._owners[number] = record["owner"]

    def _reported(self, record: Record) -> None:
        trial, value = self.trials[record["trial"]], record["value"]
        self._suggested(record)
        step = min(record["step"], trial.job_resource)
        if step <= trial.step or isnan(value):  # a repeated job reports the same steps again
            if step >= trial.job_resource:
                self._stopped.setdefault(trial.number, step)
            return
        trial.step = step
        self._pass_details(record)
        decision = self.scheduler.on_report(trial.number, step, self._sign * value)
        if trial.number in self._starts:
            decision = self._starts[trial.number].on_report(trial.number, step, self._sign * value)
        self._notify(self.searcher.on_report, trial.config, step, self._sign * value)
        if decision is Decision.STOP or step >= trial.job_resource:
            self._stopped.setdefault(trial.number, step)

    def _apply_told(self, record: Record) -> None:
        trial, losses = self.trials[record["trial"]], losses_of(record, self.objectives)
        self._suggested(record)
        resource = record["resource"]
        trial.values[resource] = record["value"]
        trial.objectives, trial.constraints = dict(record.get("values", {})), record.get("constraints", {})
        trial.step = max(trial.step, resource)
        trial.times = _times(record)
        self._note_best(trial)
        self._stopped.pop(trial.number, None)
        self._losses.pop(trial.number, None)
        self._pass_details(record)
        changed = self.scheduler.on_result(trial.number, resource, losses[0])
        if len(losses) > 1:
            self._notify(self.searcher.on_losses, trial.config, resource, losses)
        else:
            self._notify(self.searcher.on_result, trial.config, resource, losses[0])
        self._change(changed)

    def _pass_details(self, record: Record) -> None:
        if (details := record.get("details")) is not None:
            self.scheduler.on_details(record["trial"], details)
            if record["trial"] in self._starts:
                self._starts[record["trial"]].on_details(record["trial"], details)

    def _notify(self, hook: Callable[..., None], *values: Any) -> None:
        """Notify the searcher. An error of the searcher is logged, and the study continues."""
        try:
            hook(*values)
        except Exception as error:
            level = logging.DEBUG if self._searcher_failed else logging.WARNING
            name, where = hook.__name__, f"record {self.version + 1}"
            message = "searcher %r raised an error in %s of %s, and has not learned from it: %s: %s"
            kind = type(error).__name__
            _LOG.log(level, message, self.searcher.name, name, where, kind, error, exc_info=True)
            self._searcher_failed = True

    def _note_best(self, trial: Trial) -> None:
        """Update the incumbent: the best trial at the largest resource, and of equal trials the first."""
        outcome = {"value": trial.value, "constraints": trial.constraints}
        loss = losses_of(outcome, {VALUE: self._sign})[0]
        rank = not trial.is_feasible, -trial.resource, loss, trial.number
        self._best = rank if self._best is None else min(self._best, rank)

    def _failed(self, record: Record) -> None:
        trial = self.trials[record["trial"]]
        self._suggested(record)
        trial.failures += 1
        self._lapsed.discard(trial.number)
        trial.error, trial.traceback = record["why"], str(record.get("traceback", ""))
        trial.times = _times(record)
        self._losses.pop(trial.number, None)
        if trial.failures <= self._retries and not record["final"]:
            self._notify(self.searcher.on_retry, trial.config, trial.error)
            self._make_pending(trial)
            return
        if trial.number in self._waiting:
            self._waiting.remove(trial.number)
        self._stopped.pop(trial.number, None)
        self._set_state(trial.number, State.ERRORED)
        changed = self.scheduler.on_error(trial.number)
        self._notify(self.searcher.on_error, trial.config)
        self._change(changed)

    def _expired(self, record: Record) -> None:
        trial = self.trials[record["trial"]]
        trial.preemptions += 1
        self._lapsed.add(trial.number)
        times, before = self._losses.get(trial.number, (0, -1))
        self._losses[trial.number] = (1 if trial.step > before else times + 1), trial.step
        self._make_pending(trial)

    def _released(self, record: Record) -> None:
        trial = self.trials[record["trial"]]
        trial.preemptions += not record.get("early", False)
        self._make_pending(trial)

    def _make_pending(self, trial: Trial) -> None:
        self._set_state(trial.number, State.PENDING)
        self._waiting.append(trial.number)

    def _change(self, changed: Mapping[int, State]) -> None:
        for number, state in changed.items():
            self._set_state(number, state)

    def _set_state(self, number: int, state: State) -> None:
        trial = self.trials[number]
        if trial.state is not state:
            if not may_become(trial.state, state):
                raise ValueError(f"trial {number} is {trial.state}, which cannot become {state}")
            trial.state = state
            if state in (State.TERMINATED, State.ERRORED):
                self._starts.pop(number, None)
                self._ended.add(number)
                if state is State.TERMINATED:
                    self._notify(self.searcher.on_complete, trial.config)

    def state_dict(self) -> dict[str, Any]:  # noqa: D102
        limits = [self.searcher.limit, self.scheduler.setting.max_resource]
        starts = {number: scheduler.state_dict() for number, scheduler in self._starts.items()}
        return {**super().state_dict(), "limits": limits} | ({"starts": starts} if starts else {})

    def draft(self, fresh: Progress, branch: int) -> Callable[[], Draft | None]:
        """Return a function that makes the next proposal from a copy of the scheduler and the searcher.

        The copy is in `fresh`, a state before the first record. The function returns None if the scheduler
        asks for no proposal.
        """
        parts = {name: getattr(self, name).state_dict() for name in ("scheduler", "searcher")}
        fresh._load_limits([self.searcher.limit, self.scheduler.setting.max_resource])
        for name, state in json.loads(json.dumps(parts)).items():
            getattr(fresh, name).load_state_dict(state)
        searcher, n_trials = fresh.searcher, len(self.trials)
        searcher.branch = branch

        def propose() -> Draft | None:
            fresh.scheduler.suggest(searcher)
            return None if searcher.proposed is None else Draft(searcher.proposed, n_trials, searcher.seconds)

        return propose

    def _scheduler_with(self, state: Mapping[str, Any]) -> Scheduler:
        """Return a copy of the scheduler that has a state of its own."""
        scheduler = type(self.scheduler)(**self.scheduler.options)
        scheduler.begin(self.scheduler.setting)
        scheduler.load_state_dict(json.loads(json.dumps(state)))
        return scheduler

    def _load_limits(self, limits: Sequence[Any]) -> None:
        self.searcher.limit, most = limits
        if most != self.scheduler.setting.max_resource:
            self.scheduler.extend(replace(self.scheduler.setting, max_resource=most))

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state. The scheduler and the searcher must have begun with the settings of that state."""
        self._load_limits(state["limits"])
        super().load_state_dict(state)
        starts = state.get("starts", {}).items()
        self._starts = {int(number): self._scheduler_with(start) for number, start in starts}
        self._ended, self._best = set(), None
        for trial in (*self.trials.values(), *self.added.values()):
            if trial.values:
                self._note_best(trial)
        for trial in self.trials.values():
            if trial.state in (State.TERMINATED, State.ERRORED):
                self._ended.add(trial.number)


def _times(record: Record) -> tuple[float, float] | None:
    """Return the start and the end of an objective, if a record has both."""
    times = record.get("times")
    if not isinstance(times, list | tuple) or [*map(type, times)] != [float, float]:
        return None
    return times[0], times[1]


def _job_record(
    trial: int,
    attempt: int,
    owner: str,
    config: Mapping[str, Any],
    resource: int,
    came_from: ResumeFrom | None,
) -> Record:
    return {
        "kind": "asked",
        "trial": trial,
        "attempt": attempt,
        "owner": owner,
        "config": dict(config),
        "resource": resource,
        "resume_from": None if came_from is None else list(came_from),
    }


def _next_attempt(trial: Trial, owner: str) -> Record:
    """Return the record that claims the next attempt of a trial's job."""
    number, attempt = trial.number, trial.attempt + 1
    return _job_record(number, attempt, owner, trial.config, trial.job_resource, trial.resume_from)


def _failed_record(trial: Trial, reason: str) -> Record:
    return {"kind": "failed", "trial": trial.number, "attempt": trial.attempt, "why": reason, "final": True}
