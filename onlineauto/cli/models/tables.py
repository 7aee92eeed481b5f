"""``Table``: an inspection as tables for a terminal, as Markdown, or as plain text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts.

    Attributes
    ----------
    title : str
        Title of the table.
    columns : tuple of str
        Titles of the columns.
    rows : list of tuple of str
        The texts, one for each column.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def tables_of(found: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the nonempty tables of an inspection."""
    tables = (
        Table("Model", ("what", "is"), list(_summary(found))),
        Table(
            "Champion's interactions",
            ("interaction",),
            [(each,) for each in found["champion"]["interactions"]],
        ),
        Table("History", ("what happened",), [(line.strip(),) for line in found["history"]]),
        Table(
            "Namespaces",
            ("name", "actions", "features"),
            [
                (each["name"], _count(each.get("actions")), _count(each.get("features")))
                for each in found["namespaces"]
            ],
        ),
        Table("Live configs", _LIVE_COLUMNS, [_live(each) for each in found["live_configs"]]),
        Table("Ensemble", _MEMBER_COLUMNS, [_member(each) for each in found["stack"]]),
        Table(
            "Largest weights", ("name", "number", "weight"), [_weight(each) for each in found["top_weights"]]
        ),
    )
    return (table for table in tables if table.rows)


_MEMBER_COLUMNS = ("member", "weight", "price (champion = 1)")

_PREDICTORS = {"champion": "the champion", "mix": "the mix", "stack": "the ensemble"}
"""Descriptions of what predicts, by its name in an inspection."""

_LIVE_COLUMNS = (
    "index",
    "interactions",
    "beside the champion",
    "events",
    "lease",
    "reward",
    "champion's",
    "evidence",
)


def _summary(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    file, learnt = found["file"], found["learnt"]
    yield "file", f"{file['path']}, {file['bytes']} bytes"
    layout = "" if file["layout"] is None else f" (layout {file['layout']})"
    yield "written by", f"{file['program']}{layout}"
    yield "options", found["options"] or "none"
    if found["predicts_only"]:
        by = found["predicted_by"]
        alone = "the champion alone" if by is None or by["who"] == "champion" else _PREDICTORS[by["who"]]
        yield "kind", f"{alone}, to predict with"
    passes = learnt["passes"]
    yield (
        "trained on",
        f"{learnt['weight_of_events']:,g} events (sum of weights), {passes} pass{'es' * (passes != 1)}",
    )
    yield "weights", f"{learnt['weights']} that are not 0"
    yield "labels", "from {:g} to {:g}".format(*learnt["label_range"])
    if origin := learnt["cost_origin"]:
        yield "origin of costs", f"{origin:g}"
    for name, value in found["champion"]["settings"].items():
        yield f"champion's {name}", str(value)
    if found["predicted_by"]:
        who, since = found["predicted_by"]["who"], found["predicted_by"]["since"]
        yield "predicted by", _PREDICTORS[who] + (f" since event {since:,}" if since else "")


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _live(each: Mapping[str, Any]) -> tuple[str, ...]:
    differs = [*each["differs_by"], *(f"{name}={value}" for name, value in each["settings"].items())]
    text = ", ".join(differs[:6]) + (f" and {len(differs) - 6} more" if len(differs) > 6 else "")
    return (
        str(each["index"]),
        str(each["interactions"]),
        text if each["index"] else "is the champion",
        _count(each.get("events")),
        _count(each.get("lease")),
        _bounds(each.get("reward")),
        _bounds(each.get("champion_reward")),
        f"{each['evidence']:.4g}" if "evidence" in each else "",
    )


def _bounds(bounds: Sequence[float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:.4g} to {bounds[1]:.4g}"


def _member(each: Mapping[str, Any]) -> tuple[str, ...]:
    idle = "rests" if each.get("rests") else "has no score"
    price = f"{each['price']:.1f}" if "price" in each else ""
    return each["who"], idle if each["weight"] is None else f"{each['weight']:.3f}", price


def _weight(each: Mapping[str, Any]) -> tuple[str, ...]:
    return each["name"] or "", str(each["number"]), f"{each['weight']:.6g}"


def markdown(tables: Iterable[Table]) -> str:
    """Return tables as Markdown, each under its title."""
    parts = []
    for table in tables:
        rows = [table.columns, ("---",) * len(table.columns), *table.rows]
        lines = ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in rows]
        parts.append("\n".join([f"## {table.title}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def plain(tables: Iterable[Table]) -> str:
    """Return tables as plain text, with columns as wide as their longest text."""
    parts = []
    for table in tables:
        rows = [table.columns, *table.rows]
        widths = [max(len(row[k]) for row in rows) for k in range(len(table.columns))]
        lines = [
            "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        parts.append("\n".join([table.title, *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def print_tables(tables: Iterable[Table]) -> None:
    """Print tables to standard output: with rich on a terminal if it is installed, else as plain text."""
    console = None
    if sys.stdout.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            console = Console()
    if console is None:
        sys.stdout.write(plain(tables))
        return
    from rich.table import Table as Drawn
    from rich.text import Text

    for table in tables:
        drawn = Drawn(title=table.title, title_justify="left")
        for column in table.columns:
            drawn.add_column(column, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        console.print(drawn)
