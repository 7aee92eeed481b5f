"""Say what is valid in a file of jobs: the keys of its tables, and what each of them takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CLUSTER: Final = {"capacity", "slot", "policy", "learned", "backend", "history", "places", "address"}
"""Keys of the table ``cluster``."""
OF_STUDY: Final = {
    "scheduler",
    "searcher",
    "min_resource",
    "max_resource",
    "eta",
    "mode",
    "seed",
    "max_trials",
}
"""Keys of a job that are options of its study."""
RUNS: Final = {"rounds", "checkpoint_every", "checkpoints", "most_workers"}
"""Keys of a job that are options of `Study.run`."""
_ANY: Final = {"name", "kind", "worker"}
_STUDY: Final = {"study", "space", "trainable", "retries", "lease", *OF_STUDY, *RUNS}
_STREAM: Final = {"stream", "flags", "model", "sharded"}
_ALONE: Final = {"events", "save_every"}
_CUT: Final = {"parts", "part_events", "warm_up", "blocks"}
_TEXTS: Final = {
    *("name", "kind", "study", "trainable", "stream", "flags", "model", "checkpoints"),
    *("scheduler", "searcher", "mode", "policy", "backend", "address"),
}
_PATHS: Final = {"history", "learned"}
_COUNTS: Final = {"events", "save_every", "rounds", "checkpoint_every", "most_workers", "places"}
_TABLES: Final = {"worker": "{CPU = 1}", "server": "{CPU = 0.5}", "capacity": "{CPU = 8}"}


def keys_of(job: Mapping[str, Any]) -> set[str]:
    """Return the keys that a job may have: one of a study, of a stream, or of a sharded stream."""
    if "stream" not in job:
        return _ANY | _STUDY
    return _ANY | _STREAM | ({"server"} if job.get("sharded") else _ALONE)


def wrong_in(table: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the first key of a table whose value is of a wrong kind, and what it takes, or None.

    >>> wrong_in({"slot": 5, "capacity": 8})
    ('capacity', 'capacity = 8: give names and amounts, as {CPU = 8}')
    """
    for key, value in table.items():
        if takes := _taken_by(key, value):
            return key, f"{key} = {value!r}: give {takes}"
    return None


def _taken_by(key: str, value: Any) -> str:
    """Return what a key takes, if this value is not of that kind."""
    if key in _TEXTS and not isinstance(value, str):
        return "a text"
    if key in _PATHS and not isinstance(value, str):
        return "the path of a file"
    if key in _COUNTS and (type(value) is not int or value < 1):
        return "a whole number, 1 or more"
    if key in _TABLES and not isinstance(value, dict):
        return f"names and amounts, as {_TABLES[key]}"
    if key == "space" and not isinstance(value, str | dict):
        return "the path of a file, or a table"
    is_cut = isinstance(value, bool) or (isinstance(value, dict) and value.keys() <= _CUT)
    if key == "sharded" and not is_cut:
        return f"true, or a table of {', '.join(sorted(_CUT))}"
    return ""
