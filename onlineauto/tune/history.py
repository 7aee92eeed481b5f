"""``rows``: the values in a log, as a tidy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.tune.store import Record

__all__ = ["rows"]


def rows(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Return a row for each value that was reported or told, in order.

    Returns
    -------
    list of dict
        Keys: ``trial``, ``attempt``, ``resource``, ``value``, ``told`` (False if it was reported), and
        ``config_…`` for each parameter of the trial, and the details of the value, but for lists.
    """
    configs = {each["trial"]: each["config"] for each in records if each["kind"] == "asked"}
    return [
        {
            "trial": each["trial"],
            "attempt": each["attempt"],
            "resource": each["resource"] if each["kind"] == "told" else each["step"],
            "value": each["value"],
            "told": each["kind"] == "told",
            **{f"config_{name}": value for name, value in configs[each["trial"]].items()},
            **{name: what for name, what in each.get("details", {}).items() if not isinstance(what, list)},
        }
        for each in records
        if each["kind"] in ("told", "reported")
    ]
