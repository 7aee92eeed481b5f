"""``rows``: the values in a log, as a tidy table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from onlineauto.tune.store import Record


def rows(
    records: Sequence[Record],
    skipped: Collection[int] = (),
    *,
    after: int = 0,
    configs: dict[int, Mapping[str, Any]] | None = None,
    lists: bool = False,
) -> list[dict[str, Any]]:
    """Return a row for each value that was reported, intermediate or final, in order."""
    records = [record for version, record in enumerate(records, after + 1) if version not in skipped]
    configs = {} if configs is None else configs
    configs |= {each["trial"]: each["config"] for each in records if each["kind"] == "asked"}
    configs |= {each["trial"]: each["suggested"]["config"] for each in records if each.get("suggested")}
    return [
        {
            "trial": each["trial"],
            "attempt": each["attempt"],
            "resource": each["resource"] if each["kind"] == "told" else each["step"],
            "value": each["value"],
            "told": each["kind"] == "told",
            **{f"value_{name}": value for name, value in each.get("values", {}).items()},
            **{f"constraint_{name}": value for name, value in each.get("constraints", {}).items()},
            **{f"config_{name}": value for name, value in configs[each["trial"]].items()},
            **{
                name: detail
                for name, detail in each.get("details", {}).items()
                if lists or not isinstance(detail, list)
            },
        }
        for each in records
        if each["kind"] in ("told", "reported") and each["trial"] in configs
    ]
