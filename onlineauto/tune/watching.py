"""``StudyWatch``: follow a study of a store without writing, and describe it as plain JSON for a page.

The size of a description is bounded: of many values, lines or failures it has a sample, and says of how many.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.pictures.studies import (
    best_so_far,
    code_of,
    importance,
    is_feasible,
    marks_of,
    values_at_common_resource,
)
from onlineauto.tune.replica import Replica, rows
from onlineauto.tune.schedulers import State
from onlineauto.tune.searchers.outcome import objectives_of
from onlineauto.tune.settings import UNLIMITED, StudySettings
from onlineauto.tune.study_view import StudyView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.tune.store.store_reader import StudyReader
    from onlineauto.tune.trial import Trial

_POINTS: Final = 800
_LINES: Final = 200
_ROWS: Final = 2000
"""Maximum number of trials from which the importance of parameters is computed."""
_NAMED: Final = 12
"""Maximum number of trials that are listed by number."""
_RUNGS: Final = 12
_GROUPS: Final = 20
_ERROR: Final = 2000
_TRACEBACK: Final = 6000
"""Maximum numbers of characters of an error and of its traceback; of this, the end counts."""
_WIDE: Final = 10

Description = dict[str, Any]
Row = dict[str, Any]


class StudyWatch(StudyView):
    """A study of a store, as far as its log was read."""

    def __init__(self, store: StudyReader) -> None:
        records = store.load()
        if not records:
            raise OptionError(f"there is no study {store.name!r} in the store")
        settings = StudySettings.read(records[0]["settings"], scheduler=None, searcher=None)
        super().__init__(Replica(store, settings, store.name))
        self.leases = store.leases
        """Returns the jobs that have an owner now, by trial."""
        self._configs: dict[int, Mapping[str, Any]] = {}
        names = [*objectives_of(settings.mode)]
        # the keys of the objectives in the rows of a history
        self._keys = ["value"] if len(names) == 1 else [f"value_{name}" for name in names]
        self._valued: list[Row] = []  # values with which jobs ended, in order
        self._feasible: list[Row] = []
        self._constraints: dict[str, dict[int, float]] = {}  # by name and trial
        self._errors: dict[int, None] = {}  # trials with an error, the latest last
        self._read = 0
        self._note(len(records))

    def follow(self) -> int:
        """Read what is new in the log, and return the number of its records."""
        with self._replica.lock:
            self.refresh()
            version = self._replica.progress.version
            if version > self._read:
                self._note(version)
            return version

    @property
    def version(self) -> int:
        """The number of records that were read."""
        return self._read

    def _note(self, version: int) -> None:
        """Collect the values, constraints and errors of the records up to a version."""
        records = self._replica.records(self._read, version)
        self._read = version
        for row in rows(records, configs=self._configs):
            if row["told"] and all(math.isfinite(row.get(key, math.nan)) for key in self._keys):
                self._valued.append(row)
                if is_feasible(row):
                    self._feasible.append(row)
                for name in [name for name in row if name.startswith("constraint_")]:
                    of_trial = self._constraints.setdefault(name.removeprefix("constraint_"), {})
                    of_trial[row["trial"]] = row[name]
        for record in records:
            if record["kind"] == "failed":
                self._errors.pop(record["trial"], None)
                self._errors[record["trial"]] = None

    def summary(self) -> Description:
        """Return the number of trials by state, and the incumbent."""
        with self._replica.lock:
            progress, best = self._replica.progress, self.best
            trials = [*progress.trials.values(), *progress.enqueued()]
            return {
                "name": self.name,
                "states": Counter(str(trial.state) for trial in trials),
                "trials": len(trials),
                "is_done": self.is_done,
                "objectives": self.objectives,
                "best": None if best is None else _best(best),
            }

    def describe(self) -> Description:
        """Return all that a page displays of the study, except for the leases."""
        with self._replica.lock:
            setting, settings = self.settings.setting, self.settings
            space, keys = self.space.described(), self._keys
            valued, drawn = self._valued, self._feasible or self._valued
            trials = [*self._replica.progress.trials.values()]
            return {
                **self.summary(),
                "version": self._read,
                "scheduler": settings.scheduler[0],
                "searcher": settings.searcher[0],
                "signs": [*self._replica.progress.objectives.values()],
                "max_trials": settings.max_trials,
                "max_resource": setting.max_resource,
                "unlimited": UNLIMITED,
                "added": len(self._replica.progress.added),
                "values": len(valued),
                "infeasible": len(valued) - len(self._feasible),
                "curve": self._curve(drawn) if len(keys) == 1 else None,
                "front": self._front(valued, keys) if len(keys) > 1 else None,
                "rungs": self._rungs(trials),
                "configs": self._configs_drawn(drawn, space, keys),
                "constraints": [
                    {
                        "name": name,
                        "trials": len(values),
                        "violated": sum(value > 0 for value in values.values()),
                        "low": min(values.values()),
                        "high": max(values.values()),
                    }
                    for name, values in self._constraints.items()
                ],
                "failures": self._failures(),
                "goals": {
                    trial.number: trial.job_resource for trial in trials if trial.state is State.RUNNING
                },
                "lost": sum(trial.preemptions for trial in trials),
                "skipped": [
                    f"record {record.version} ({record.kind}): {record.why}"[:_ERROR]
                    for record in self.skipped[-_NAMED:]
                ],
                "n_skipped": len(self.skipped),
            }

    def _curve(self, valued: Sequence[Row]) -> Description:
        """Return the values in order of arrival, and where the incumbent changed."""
        sign = self._replica.progress.objectives["value"]
        best = best_so_far(valued, sign)
        changes = [index for index in range(len(best)) if not index or best[index] != best[index - 1]]
        losses = sorted(sign * row["value"] for row in valued)
        drawn = _sample(range(len(valued)), _POINTS)
        clip = None
        if losses and losses[-1] - losses[0] > _WIDE * (losses[len(losses) * 9 // 10] - losses[0]) > 0:
            margin = 0.1 * (losses[len(losses) * 9 // 10] - losses[0])
            clip = sorted((sign * (losses[0] - margin), sign * (losses[len(losses) * 9 // 10] + margin)))
        return {
            "count": len(valued),
            "points": [
                [index + 1, valued[index]["value"], valued[index]["resource"], valued[index]["trial"]]
                for index in drawn
            ],
            "best": [
                [index + 1, best[index], valued[index]["trial"], valued[index]["resource"]]
                for index in changes
            ],
            "clip": clip,
        }

    def _front(self, valued: Sequence[Row], keys: Sequence[str]) -> Description:
        """Return the values of trials, and those that no other trial dominates."""
        best = {trial.number: trial for trial in self.best_trials}
        latest = {row["trial"]: row for row in valued}
        others = [row for number, row in latest.items() if number not in best]
        ordered = sorted(best.values(), key=lambda trial: trial.objectives.get(self.objectives[0], 0.0))
        return {
            "count": len(best),
            "trials": [_best(trial) for trial in ordered[:_LINES]],
            "others": [
                [[row[key] for key in keys], is_feasible(row), row["trial"]]
                for row in _sample(others, _POINTS)
            ],
            "n_others": len(others),
        }

    def _rungs(self, trials: Sequence[Trial]) -> list[Description]:
        """Return the rungs from the lowest to the highest: which trials ended a job there, and what followed.

        More than a dozen resources are combined into ranges, whose bounds are powers of eta.
        """
        setting = self._replica.progress.scheduler.setting
        level = {State.RUNNING, State.PENDING}
        used = {resource for trial in trials for resource in trial.values}
        used |= {trial.job_resource for trial in trials if trial.state in level}
        group = dict.fromkeys(used, 0)
        if len(used) <= _RUNGS:
            group = {resource: index for index, resource in enumerate(sorted(used))}
        else:
            low = max(setting.min_resource, 1)
            group = {resource: int(math.log(max(resource / low, 1), setting.eta) + 1e-9) for resource in used}
        rungs: dict[int, Description] = {}
        for resource in sorted(used):
            rung = rungs.setdefault(group[resource], {"from": resource, "ended": 0, "best": None})
            rung["to"] = resource
            for outcome in _OUTCOMES:
                rung.setdefault(outcome, [])
        sign = self._replica.progress.objectives.get("value")
        for trial in trials:
            reached = sorted({group[resource] for resource in trial.values})
            for rung_index in reached:
                rungs[rung_index]["ended"] += 1
                outcome = (
                    "promoted"
                    if rung_index < reached[-1]
                    else _outcome(trial, rung_index, group, setting.max_resource)
                )
                rungs[rung_index][outcome].append(trial.number)
            if trial.state in level:
                rungs[group[trial.job_resource]]["running"].append(trial.number)
            for resource, value in trial.values.items():
                rung = rungs[group[resource]]
                if sign is not None and (rung["best"] is None or sign * value < sign * rung["best"]):
                    rung["best"] = value
        for rung in rungs.values():
            for outcome in _OUTCOMES:
                rung[outcome] = {"count": len(rung[outcome]), "latest": rung[outcome][-_NAMED:]}
        return [rungs[index] for index in sorted(rungs)]

    def _configs_drawn(
        self, valued: Sequence[Row], space: Mapping[str, Mapping[str, Any]], keys: Sequence[str]
    ) -> Description | None:
        """Return the configs as lines over all parameters, and the importance of each parameter."""
        if not valued or not space:
            return None
        level, at_level = values_at_common_resource(valued)
        best = {trial.number for trial in self.best_trials}
        sign = next(iter(self._replica.progress.objectives.values()))
        ranked = sorted(at_level, key=lambda row: sign * row[keys[0]])
        if len(keys) > 1:
            ranked.sort(key=lambda row: row["trial"] not in best)
        good = ranked[: _LINES // 2]
        drawn = [*good, *_sample(ranked[len(good) :], _LINES - len(good))]
        place = {row["trial"]: index for index, row in enumerate(ranked)}
        sample = _sample(at_level, _ROWS)
        return {
            "level": level,
            "count": len(at_level),
            "axes": [[name, marks_of(declaration)] for name, declaration in space.items()],
            "lines": [
                {
                    "trial": row["trial"],
                    "value": row[keys[0]],
                    "is_best": row["trial"] in best if len(keys) > 1 else not place[row["trial"]],
                    "rank": 1 - place[row["trial"]] / max(len(ranked) - 1, 1),
                    "codes": [
                        code_of(declaration, row[f"config_{name}"]) if f"config_{name}" in row else None
                        for name, declaration in space.items()
                    ],
                }
                for row in drawn
            ],
            "sampled": len(sample),
            "importance": [importance([{**row, "value": row[key]} for row in sample], space) for key in keys],
        }

    def _failures(self) -> Description:
        """Return the errors of trials, the latest first; equal errors are one."""
        trials, groups = self._replica.progress.trials, dict[str, Description]()
        failed = [trials[number] for number in reversed(self._errors) if number in trials]
        for trial in failed:
            group = groups.setdefault(
                trial.error,
                {
                    "error": trial.error[:_ERROR],
                    "traceback": trial.traceback[-_TRACEBACK:],
                    "count": 0,
                    "trials": [],
                    "goes_on": 0,
                },
            )
            group["count"] += 1
            group["goes_on"] += trial.state is not State.ERRORED
            if len(group["trials"]) < _NAMED:
                group["trials"].append(trial.number)
        return {"trials": len(failed), "kinds": len(groups), "groups": [*groups.values()][:_GROUPS]}


_OUTCOMES: Final = ("promoted", "waiting", "stopped", "finished", "failed", "running")
"""What became of the trials of a rung."""


def _outcome(trial: Trial, rung: int, group: Mapping[int, int], most: int) -> str:
    """Return what became of a trial after the highest rung that it has reached."""
    if trial.state in (State.RUNNING, State.PENDING):
        return "promoted" if group[trial.job_resource] > rung else "waiting"
    if trial.state is State.PAUSED:
        return "waiting"
    if trial.state is State.ERRORED:
        return "failed"
    return "finished" if trial.resource >= most else "stopped"


def _best(trial: Trial) -> Description:
    return {
        "trial": trial.number,
        "value": trial.value,
        "resource": trial.resource,
        "config": trial.config,
        "objectives": trial.objectives,
        "is_feasible": trial.is_feasible,
    }


def _sample(items: Sequence[Any], most: int) -> list[Any]:
    """Return at most `most` items at equal distances, among them the first and the last.

    >>> _sample(range(9), 3)
    [0, 4, 8]
    """
    if len(items) <= most:
        return [*items]
    return [items[index] for index in np.linspace(0, len(items) - 1, most).astype(int).tolist()]
