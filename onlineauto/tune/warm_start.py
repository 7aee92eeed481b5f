"""``added_trials``: finished trials of another study, a table or a CSV file, for ``Study.add_trials``."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from math import isnan, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import InputError, OptionError, kind_of
from onlineauto.tune.plain import as_int, number, scalar
from onlineauto.tune.spaces.parameter import number_of_text
from onlineauto.tune.spaces.space import OpenSpace
from onlineauto.tune.study_view import StudyView

if TYPE_CHECKING:
    from onlineauto.tune.spaces import Parameter, Space

_PREFIXES: Final = ("params_", "config_", "config/")
_UNFINISHED: Final = ("PRUNED", "FAIL", "RUNNING", "WAITING")
"""States whose values are left out if the resource is unknown, as in tables of Optuna."""


def added_trials(
    source: Any, space: Space, max_resource: int, declared: Mapping[str, Parameter]
) -> list[dict[str, Any]]:
    """Return the config, the resource and the value of each finished trial.

    In an open space, values are checked against the parameters that are `declared` so far.

    The largest resource of the source counts as `max_resource`, because it is that of a complete trial.
    """
    rows = [_row(index, trial, space) for index, trial in enumerate(_trials(source, space))]
    last = {row["trial"] if row["trial"] is not None else -1 - index: row for index, row in enumerate(rows)}
    matching = [
        row
        for row in last.values()
        if not (isnan(row["value"]) or (row["state"] in _UNFINISHED and not row["resource"]))
    ]
    if not matching:
        raise OptionError("add_trials: there is no trial with a value")
    most = max(row["resource"] or 0 for row in matching)
    added = []
    for index, row in enumerate(matching):
        try:
            config = space.check(row["config"])
            for name, parameter in declared.items():
                if (cell := parameter.of_cell(config.get(name))) is not None:
                    parameter.check(name, cell)
        except OptionError as error:
            raise OptionError(f"add_trials: trial {index} of {len(matching)}: {error}") from error
        resource = row["resource"] or most
        complete = resource == most or resource >= max_resource
        added.append(
            {"config": config, "resource": max_resource if complete else resource, "value": row["value"]}
        )
    return added


def signs_of(source: Any) -> list[float]:
    """Return the sign of each objective of a study, here or of Optuna; nothing of any other source."""
    if isinstance(source, StudyView):
        return list(source._replica.progress.objectives.values())  # noqa: SLF001 - of the same package
    return [-1.0 if direction.name == "MAXIMIZE" else 1.0 for direction in getattr(source, "directions", ())]


def _trials(source: Any, space: Space) -> Iterable[Any]:
    if isinstance(source, str | Path):
        try:
            with Path(source).open(encoding="utf-8-sig", newline="") as file:
                rows = list(csv.DictReader(file))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{source}: {getattr(error, 'strerror', None) or error}") from error
        read = _guess if isinstance(space, OpenSpace) else str
        return [{name: read(text or "") for name, text in row.items()} for row in rows]
    if callable(getattr(source, "to_dict", None)):
        frame: list[Any] = source.to_dicts() if hasattr(source, "to_dicts") else source.to_dict("records")
        return frame
    trials = getattr(source, "trials", source)
    if isinstance(trials, Mapping) or not isinstance(trials, Iterable):
        raise OptionError(
            f"add_trials({kind_of(source)}): give a study, its trials, rows, a frame or a CSV file"
        )
    return trials


def _row(index: int, trial: Any, space: Space) -> dict[str, Any]:
    """Return a trial as a row: of this library, of Optuna, or of a table."""
    if isinstance(trial, Mapping):
        if "value" not in trial:
            raise OptionError(f"add_trials: a row has no 'value'; it has {', '.join(map(str, trial))}")
        ends = str(trial.get("told", True)) == "True"
        config = {
            name[len(prefix) :]: None if _is_missing(value) else value
            for name, value in trial.items()
            for prefix in _PREFIXES
            if str(name).startswith(prefix)
        }
        value, resource = (number_of_text(trial.get(key)) for key in ("value", "resource"))
        key = trial.get("trial", trial.get("number"))
        if ends and str(value).strip().lstrip("+-").lower() in ("inf", "infinity"):
            raise OptionError(
                f"add_trials: row {index} has the value {value}, which is not finite: leave it out"
            )
        return {
            "trial": None if _is_missing(key) else str(key),
            "config": _typed(config, space),
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


def _typed(config: Mapping[str, Any], space: Space) -> dict[str, Any]:
    """Return the values of a row as those of the parameters; in an open space, those of the cells."""
    if isinstance(space, OpenSpace):
        return {name: scalar(cell) for name, cell in config.items()}
    typed = {name: cell for name, cell in config.items() if name not in space.parameters and cell is not None}
    for name in space.ordered:
        parameter, cell = space.parameters[name], config.get(name)
        value = parameter.of_cell(cell) if cell is not None or space.exists(name, typed) else None
        if value is not None or (parameter.holds(None) and space.exists(name, typed)):
            typed[name] = value
    return typed


def _is_missing(value: Any) -> bool:
    return value is None or value == "" or value != value


def _guess(text: str) -> Any:
    """Return the number or the boolean that a text represents exactly, or the text."""
    value = {"True": True, "False": False}.get(text, number_of_text(text))
    return value if str(value) == text else text
