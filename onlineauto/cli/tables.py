"""``Table``: an inspection as tables for a terminal, as Markdown, or as plain text."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onlineauto.cli.terminal import table_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts."""

    title: str  # Title of the table.
    columns: tuple[str, ...]  # Titles of the columns.
    rows: list[tuple[str, ...]]  # The texts, one for each column.


def tables_of(inspection: Mapping[str, Any]) -> Iterator[Table]:
    """Yield the nonempty tables of an inspection."""
    tables = (
        Table("Model", ("what", "is"), list(_summary(inspection))),
        Table(
            "Champion's interactions",
            ("interaction",),
            [(each,) for each in inspection["champion"]["interactions"]],
        ),
        Table("History", ("what happened",), [(line.strip(),) for line in inspection["history"]]),
        Table(
            "Namespaces",
            ("name", "actions", "features"),
            [
                (each["name"], _count(each.get("actions")), _count(each.get("features")))
                for each in inspection["namespaces"]
            ],
        ),
        Table("Live configs", _LIVE_COLUMNS, [_live_config_row(each) for each in inspection["live_configs"]]),
        Table("Ensemble", _MEMBER_COLUMNS, [_member_row(each) for each in inspection["stack"]]),
        Table(
            "Largest weights",
            ("name", "number", "weight"),
            [_weight_row(each) for each in inspection["top_weights"]],
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


def _summary(inspection: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    file, learnt = inspection["file"], inspection["learnt"]
    yield "file", f"{file['path']}, {file['bytes']} bytes"
    layout = "" if file["layout"] is None else f" (layout {file['layout']})"
    yield "written by", f"{file['program']}{layout}"
    yield "options", inspection["options"] or "none"
    if inspection["predicts_only"]:
        predictor = inspection["predicted_by"]
        alone = (
            "the champion alone"
            if predictor is None or predictor["who"] == "champion"
            else _PREDICTORS[predictor["who"]]
        )
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
    for name, value in inspection["champion"]["settings"].items():
        yield f"champion's {name}", str(value)
    if inspection["predicted_by"]:
        predictor_name, since = inspection["predicted_by"]["who"], inspection["predicted_by"]["since"]
        yield "predicted by", _PREDICTORS[predictor_name] + (f" since event {since:,}" if since else "")


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


def _live_config_row(live_config: Mapping[str, Any]) -> tuple[str, ...]:
    differs = [
        *live_config["differs_by"],
        *(f"{name}={value}" for name, value in live_config["settings"].items()),
    ]
    text = ", ".join(differs[:6]) + (f" and {len(differs) - 6} more" if len(differs) > 6 else "")
    return (
        str(live_config["index"]),
        str(live_config["interactions"]),
        text if live_config["index"] else "is the champion",
        _count(live_config.get("events")),
        _count(live_config.get("lease")),
        _bounds(live_config.get("reward")),
        _bounds(live_config.get("champion_reward")),
        f"{live_config['evidence']:.4g}" if "evidence" in live_config else "",
    )


def _bounds(bounds: Sequence[float] | None) -> str:
    return "" if bounds is None else f"{bounds[0]:.4g} to {bounds[1]:.4g}"


def _member_row(member: Mapping[str, Any]) -> tuple[str, ...]:
    idle = "rests" if member.get("rests") else "has no score"
    price = f"{member['price']:.1f}" if "price" in member else ""
    return member["who"], idle if member["weight"] is None else f"{member['weight']:.3f}", price


def _weight_row(member: Mapping[str, Any]) -> tuple[str, ...]:
    return member["name"] or "", str(member["number"]), f"{member['weight']:.6g}"


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


def plain_text(tables: Iterable[Table]) -> str:
    """Return tables as plain text."""
    parts = []
    for table in tables:
        lines = table_lines([table.columns, *table.rows], right=False)
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
        sys.stdout.write(plain_text(tables))
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
