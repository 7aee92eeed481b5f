"""Check a record of a study's log against the state before it, without changing anything.

A record fits if it was committed by the owner of a job, or by a process that decided on the next job. A
record that does not fit is skipped by `Replica`, and everything after it is applied.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OnlineautoError, OptionError
from onlineauto.tune.plain import as_int, count, number
from onlineauto.tune.schedulers import State
from onlineauto.tune.spaces import Space

if TYPE_CHECKING:
    from onlineauto.tune.store import Record
    from onlineauto.tune.trial import Trial

_OF_JOBS: Final[Mapping[str, tuple[State, ...]]] = {
    "reported": (State.RUNNING,),
    "told": (State.RUNNING,),
    "failed": (State.RUNNING, State.PENDING),
    "expired": (State.RUNNING,),
    "released": (State.RUNNING,),
}
"""Kinds of records about a job, and the states that its trial may have before them."""


class UnfitRecord(OnlineautoError):  # noqa: N818 - the name says what it is
    """A record cannot be applied to the state before it."""


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record of the log that could not be applied."""

    version: int  # The position in the log; the first record is 1.
    kind: str  # The kind of the record.
    why: str  # Why it could not be applied.


def check_record(
    record: Record, trials: Mapping[int, Trial], *, objectives: Collection[str] = ("value",)
) -> None:
    """Check all parts of a record that do not depend on the scheduler."""
    try:
        kind = record["kind"]
        if kind in _OF_JOBS:
            _check_job(record, trials, objectives)
        elif kind == "asked":
            _check_asked(record, trials)
        elif kind == "named":
            _need(isinstance(record["trainable"], str), "trainable is not text")
        elif kind == "noted":
            known = record["trial"] is None or record["trial"] in trials
            _need(known, f"there is no trial {record['trial']!r}")
            _need(isinstance(record["user_attrs"], Mapping), "user_attrs are not a mapping")
        elif kind == "extended":
            for limit in ("max_trials", "max_resource"):
                none = limit == "max_trials" and record[limit] is None
                _need(none or type(record[limit]) is int, f"{limit} = {record[limit]!r}")
                none or count(limit, record[limit], 1)
        elif kind == "enqueued":
            _need(isinstance(record["config"], Mapping), "config is not a mapping")
            _need(isinstance(record.get("user_attrs", {}), Mapping), "user_attrs are not a mapping")
        elif kind == "added":
            _need(isinstance(record["trials"], list), "trials are not a list")
            for row in record["trials"]:
                valid = isinstance(row, Mapping) and isinstance(row["config"], Mapping)
                _need(valid, "a trial, or its config, is not a mapping")
                _need((as_int(row["resource"]) or 0) >= 1, f"resource = {row['resource']!r}")
                _need(not isnan(number(row["value"])), f"value = {row['value']!r}")
    except KeyError as error:
        raise UnfitRecord(f"it has no {error}") from None
    except OptionError as error:
        raise UnfitRecord(str(error)) from None


def _check_job(record: Record, trials: Mapping[int, Trial], objectives: Collection[str]) -> None:
    kind, attempt = record["kind"], record["attempt"]
    trial = _trial(record, trials)
    _need(trial is not None, f"there is no trial {record['trial']!r}")
    assert trial is not None
    _need(trial.attempt == attempt, f"trial {trial.number} has attempt {trial.attempt}, not {attempt!r}")
    _need(trial.state in _OF_JOBS[kind], f"trial {trial.number} is {trial.state}")
    suggested = record.get("suggested", {})
    _need(isinstance(suggested, Mapping), "what was suggested is not a mapping")
    if suggested:
        valid = isinstance(suggested["config"], Mapping) and isinstance(suggested["parameters"], Mapping)
        _need(valid, "suggested values, or parameters, are not mappings")
        suggested["parameters"] and Space(suggested["parameters"])
    if kind == "failed":
        _need(isinstance(record["why"], str) and isinstance(record["final"], bool), "why or final is wrong")
    if kind in ("reported", "told"):
        place, least = ("step", 0) if kind == "reported" else ("resource", 1)
        _need(
            (as_int(record[place]) or 0) >= least and as_int(record[place]) is not None,
            f"{place} = {record[place]!r}",
        )
        value = record["value"]
        _need(isinstance(value, int | float), f"value = {value!r}")
        _need(kind == "reported" or not isnan(number(value)), f"value = {value!r}")
        for name in ("values", "constraints"):
            numbers = record.get(name, {})
            plain = isinstance(numbers, Mapping) and not any(isnan(number(part)) for part in numbers.values())
            _need(plain, f"{name} = {numbers!r}")
        values = record.get("values", {})
        all_there = kind == "reported" or set(values or ("value",)) == set(objectives)
        _need(all_there, f"values = {values!r}: the objectives are {', '.join(objectives)}")
        _need(isinstance(record.get("details", {}), Mapping), "details are not a mapping")


def _check_asked(record: Record, trials: Mapping[int, Trial]) -> None:
    trial, origin = _trial(record, trials), record["resume_from"]
    _need(isinstance(record["config"], Mapping), "config is not a mapping")
    _need(isinstance(record["owner"], str), f"owner = {record['owner']!r}")
    _need((as_int(record["resource"]) or 0) >= 1, f"resource = {record['resource']!r}")
    pair = isinstance(origin, list | tuple) and len(origin) == 2 and None not in map(as_int, origin)
    _need(origin is None or pair, f"resume_from = {origin!r}")
    attempt = record["attempt"]
    if trial is None:
        _need(record["trial"] == len(trials), f"trial = {record['trial']!r}, and {len(trials)} is next")
        _need(attempt == 0, f"attempt = {attempt!r} of a new trial")
        return
    _need(attempt == trial.attempt + 1, f"attempt {attempt!r} is not the next one")
    _need(trial.state not in (State.RUNNING, State.ERRORED), f"trial {trial.number} is {trial.state}")


def _trial(record: Record, trials: Mapping[int, Trial]) -> Trial | None:
    trial = record["trial"]
    _need(isinstance(trial, int), f"trial = {trial!r}")
    return trials.get(trial)


def _need(condition: Any, problem: str) -> None:
    if not condition:
        raise UnfitRecord(problem)
