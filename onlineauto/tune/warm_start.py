"""``added_trials``: finished trials of another study, a table or a CSV file, for ``Study.add_trials``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError, OptionError, kind_of
from onlineauto.tune.plain import as_int, number, scalar
from onlineauto.tune.spaces import Categorical, Parameter

if TYPE_CHECKING:
    from onlineauto.tune.spaces import Space

_PREFIXES: Final = ("params_", "config_", "config/")
_UNFINISHED: Final = ("PRUNED", "FAIL", "RUNNING", "WAITING")
"""States whose values are left out if the resource is unknown, as in tables of Optuna."""
_WORDS: Final = {"True": True, "False": False, "None": None}


def added_trials(source: Any, space: Space, max_resource: int) -> list[dict[str, Any]]:
    """Return the config, the resource and the value of each finished trial.

    The largest resource of the source counts as `max_resource`, because it is that of a complete trial.

    Raises
    ------
    OptionError
        If the source is none that `Study.add_trials` reads, has no trial with a value, or has a config that
        is not in the space.
    InputError
        If the file cannot be read.
    """
    rows = [_row(each, space) for each in _trials(source)]
    last = {row["trial"] if row["trial"] is not None else -1 - at: row for at, row in enumerate(rows)}
    matching = [
        row
        for row in last.values()
        if not (isnan(row["value"]) or (row["state"] in _UNFINISHED and not row["resource"]))
    ]
    if not matching:
        raise OptionError("add_trials: there is no trial with a value")
    most = max(row["resource"] or 0 for row in matching)
    added = []
    for at, row in enumerate(matching):
        try:
            config = space.check(_with_none(row["config"], space))
        except OptionError as error:
            raise OptionError(f"add_trials: trial {at} of {len(matching)}: {error}") from error
        resource = row["resource"] or most
        complete = resource == most or resource >= max_resource
        added.append(
            {"config": config, "resource": max_resource if complete else resource, "value": row["value"]}
        )
    return added


def _trials(source: Any) -> Iterable[Any]:
    if isinstance(source, str | Path):
        try:
            with Path(source).open(encoding="utf-8", newline="") as file:
                return list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source}: {getattr(error, 'strerror', None) or error}") from error
    if callable(getattr(source, "to_dict", None)):
        rows: list[Any] = source.to_dict("records")
        return rows
    trials = getattr(source, "trials", source)
    if isinstance(trials, Mapping) or not isinstance(trials, Iterable):
        raise OptionError(
            f"add_trials({kind_of(source)}): give a study, its trials, rows, a frame or a CSV file"
        )
    return trials


def _row(trial: Any, space: Space) -> dict[str, Any]:
    """Return a trial as a row: of this library, of Optuna, or of a table."""
    if isinstance(trial, Mapping):
        if "value" not in trial:
            raise OptionError(f"add_trials: a row has no 'value'; it has {', '.join(map(str, trial))}")
        ends = str(trial.get("told", True)) == "True"
        config = {
            name[len(prefix) :]: _value(value, space.parameters.get(name[len(prefix) :]))
            for name, value in trial.items()
            for prefix in _PREFIXES
            if str(name).startswith(prefix) and not _is_missing(value)
        }
        value, resource = (_value(trial.get(key), None) for key in ("value", "resource"))
        key = trial.get("trial", trial.get("number"))
        return {
            "trial": None if _is_missing(key) else str(key),
            "config": config,
            "resource": as_int(resource),
            "value": number(value) if ends else nan,
            "state": trial.get("state"),
        }
    params, value = getattr(trial, "params", None), getattr(trial, "value", None)
    if not isinstance(params, Mapping):
        raise OptionError(f"add_trials: {kind_of(trial)} is not a trial")
    return {
        "trial": None,
        "config": dict(params),
        "resource": getattr(trial, "resource", None),
        "value": number(value),
        "state": getattr(getattr(trial, "state", None), "name", ""),
    }


def _with_none(config: dict[str, Any], space: Space) -> dict[str, Any]:
    """Return a config with None where it is missing and valid, because tables have no cell for None."""
    for name in space.ordered:
        if name not in config and space.parameters[name].holds(None) and space.exists(name, config):
            config[name] = None
    return config


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _value(value: Any, parameter: Parameter | None) -> Any:
    """Return the value of a cell: a number if the text is one, or the word of a parameter."""
    if isinstance(parameter, Categorical) and not parameter.holds(scalar(value)):
        return next((each for each in parameter.values if str(each) == str(value)), value)
    if not isinstance(value, str) or isinstance(parameter, Categorical):
        return scalar(value)
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return _WORDS.get(value, value)
