"""The verb ``inspect``: print the content of a model file as tables, Markdown or JSON."""

from __future__ import annotations

import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.cli.terminal import progress_line, table_lines
from onlineauto.cli.verb import READING
from onlineauto.engine.options.registry import InspectOptions
from onlineauto.errors import OptionError
from onlineauto.formats.datasets.files import is_dataset
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.options import InputOptions
from onlineauto.interop.named_blocks import line_names, named_blocks, named_rows
from onlineauto.interop.vw.model import is_vw_model, load_any_model
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.inspection.named_examples import InverseHash, NamedExamples
from onlineauto.workspace.model_file import VERSION, read_file
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from onlineauto.features.block import Block
    from onlineauto.interop.names import LineNames
    from onlineauto.options import Configuration
    from onlineauto.workspace.workspace import Workspace

_MEMBER_COLUMNS = ("member", "weight", "price (champion = 1)")
_PREDICTORS = {"champion": "the champion", "mix": "the mix", "ensemble": "the ensemble"}
"""Descriptions of what predicts, by its name in an inspection."""
_LIVE_COLUMNS = (
    *("index", "interactions", "beside the champion"),
    *("events", "lease", "reward", "champion's", "evidence"),
)


@dataclass(frozen=True, slots=True)
class Section:
    """A table of texts."""

    title: str  # Title of the table.
    columns: tuple[str, ...]  # Titles of the columns.
    rows: list[tuple[str, ...]]  # The texts, one for each column.


def tables_of(inspection: Mapping[str, Any]) -> Iterator[Section]:
    """Yield the nonempty tables of an inspection."""
    champion = inspection["champion"]
    tables = (
        Section("Model", ("what", "is"), list(_summary(inspection))),
        Section("Champion's interactions", ("interaction",), [(name,) for name in champion["interactions"]]),
        Section("History", ("what happened",), [(line.strip(),) for line in inspection["history"]]),
        Section(
            "Namespaces",
            ("name", "actions", "features"),
            [
                (namespace["name"], _count(namespace.get("actions")), _count(namespace.get("features")))
                for namespace in inspection["namespaces"]
            ],
        ),
        Section(
            "Live configs", _LIVE_COLUMNS, [_live_config_row(config) for config in inspection["live_configs"]]
        ),
        Section("Ensemble", _MEMBER_COLUMNS, [_member_row(member) for member in inspection["ensemble"]]),
        Section(
            "Largest weights",
            ("name", "number", "weight"),
            [
                (weight["name"] or "", str(weight["number"]), f"{weight['weight']:.6g}")
                for weight in inspection["top_weights"]
            ],
        ),
    )
    return (table for table in tables if table.rows)


def _summary(inspection: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    file, learnt = inspection["file"], inspection["learnt"]
    yield "file", f"{file['path']}, {file['bytes']} bytes"
    layout = "" if file["layout"] is None else f" (layout {file['layout']})"
    yield "written by", f"{file['program']}{layout}"
    if "scaled_by" in file:
        yield "scaled by", f"{file['scaled_by']}: numbers and labels are in standard deviations from the mean"
    yield "options", inspection["options"] or "none"
    if inspection["predicts_only"]:
        who = (inspection["predicted_by"] or {"who": "champion"})["who"]
        yield "kind", f"{'the champion alone' if who == 'champion' else _PREDICTORS[who]}, to predict with"
    passes = learnt["passes"]
    of_passes = "" if passes is None else f", {passes} pass{'es' * (passes != 1)}"
    yield "trained on", f"{learnt['weight_of_events']:,g} events (sum of weights){of_passes}"
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
    price = f"{member['price']:.2f}" if "price" in member else ""
    return member["who"], idle if member["weight"] is None else f"{member['weight']:.3f}", price


def markdown(tables: Iterable[Section]) -> str:
    """Return tables as Markdown, each under its title."""
    parts = []
    for table in tables:
        rows = [table.columns, ("---",) * len(table.columns), *table.rows]
        lines = ["| " + " | ".join(_escape(cell) for cell in row) + " |" for row in rows]
        parts.append("\n".join([f"## {table.title}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def _escape(cell: str) -> str:
    return cell.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def plain_text(tables: Iterable[Section]) -> str:
    """Return tables as plain text."""
    parts = []
    for table in tables:
        lines = table_lines([table.columns, *table.rows], right=False)
        parts.append("\n".join([table.title, *(f"  {line}" for line in lines)]))
    return "\n\n".join(parts) + "\n"


def print_tables(tables: Iterable[Section]) -> None:
    """Print tables to standard output: with rich on a terminal if it is installed, else as plain text."""
    if sys.stdout.isatty():
        with suppress(ImportError):
            _draw_tables(tables)
            return
    sys.stdout.write(plain_text(tables))


def _draw_tables(tables: Iterable[Section]) -> None:
    """Draw tables with rich; raise `ImportError` before anything is drawn if it is not installed."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    for table in tables:
        drawn = Table(title=table.title, title_justify="left")
        for column in table.columns:
            drawn.add_column(column, overflow="fold")
        for row in table.rows:
            drawn.add_row(*(Text(cell) for cell in row))
        console.print(drawn)


def run(configuration: Configuration) -> int:
    """Print the content of the first file, a model, and return 0; other files are events with names."""
    model, *events = configuration[InputOptions].data or ("",)
    if not model:
        raise OptionError(
            "inspect takes a model, and files of events to learn names from: onlineauto inspect m"
        )
    reading = {name: configuration.get(name) for name in READING if name in configuration.supplied}
    flags = REGISTRY.from_keywords(testonly=True, **reading)
    workspace, run = load_any_model(model, flags, allow_scaled=True)
    names = {int(number): name for number, name in run.get("names", ())}
    options = configuration[InspectOptions]
    is_vw = is_vw_model(model)
    content: dict[str, Any] = {
        "file": {
            "path": model,
            "bytes": Path(model).stat().st_size,
            "program": "Vowpal Wabbit" if is_vw else read_file(model).get("program", "unknown"),
            "layout": None if is_vw else VERSION,
        }
    }
    if "numbers" in run.get("api", {}).get("own", {}):
        content["file"]["scaled_by"] = str(run["api"].get("class"))
    content |= inspection(workspace, names=names, top=options.largest)
    if is_vw:  # Vowpal Wabbit does not count the passes of a run without --passes
        content["learnt"]["passes"] = None
    lane = workspace.learner.champion_lane()
    unnamed = {weight["number"] - lane: weight for weight in content["top_weights"] if not weight["name"]}
    if unnamed:
        dataset = configuration[InputOptions].columns, run.get("dataset", {})
        _name_weights(workspace, unnamed, events, dataset)
    if options.format == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")
    elif options.format == "markdown":
        sys.stdout.write(markdown(tables_of(content)))
    else:
        print_tables(tables_of(content))
        if content["top_weights"] and not any(weight["name"] for weight in content["top_weights"]):
            print(f"names of weights: onlineauto inspect {model} FILE, with events", file=sys.stderr)
    return 0


def _name_weights(
    workspace: Workspace,
    weights: dict[int, dict[str, Any]],
    events: Sequence[str],
    dataset: tuple[str | None, Mapping[str, Any]],
) -> None:
    """Add names from files of events to weights, given by number, until all of them have names.

    `dataset` is the file of ``--columns``, and the columns that the model has learnt.
    """
    inverse, names = InverseHash(workspace), line_names(workspace.configuration)
    examples, problems, n = NamedExamples(workspace, names), Diagnostics(), 0
    with progress_line() as draw:
        for block in chain.from_iterable(
            _named_events(path, workspace.configuration, problems, names, dataset) for path in events
        ):
            found = inverse.names_of_weights(examples.examples_of(block), challengers=False)
            for number in weights.keys() & found.keys():
                weights.pop(number)["name"] = found[number]
            if not weights:
                break
            n += 1
            if draw is not None:
                draw(partial("{:,} events, {} weights without a name".format, n, len(weights)))
    if problems.total:
        print(problems.summary(), file=sys.stderr)


def _named_events(
    path: str,
    configuration: Configuration,
    problems: Diagnostics,
    names: LineNames,
    dataset: tuple[str | None, Mapping[str, Any]],
) -> Iterator[Block]:
    """Return the single events of a file of lines or of Parquet; see `_name_weights` for `dataset`."""
    if not is_dataset(path):
        return named_blocks(path, configuration, problems, names=names)
    from onlineauto.formats.datasets.dataset_source import DatasetSource

    columns, learnt = dataset
    source = DatasetSource(path, columns, predicts=True)
    if learnt:
        source = source.like(learnt)
    return named_rows(source, configuration, problems, names=names)
