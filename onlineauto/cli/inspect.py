"""The verb ``inspect``: print the content of a model file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from onlineauto.cli.tables import markdown, print_tables, tables_of
from onlineauto.engine.options.registry import InspectOptions
from onlineauto.errors import OptionError
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.options import FORMATS, InputOptions
from onlineauto.interop.named_blocks import line_names, named_blocks
from onlineauto.interop.vw.any_model import is_vw_model, load_any_model
from onlineauto.workspace.inspection.inspection import inspection
from onlineauto.workspace.inspection.inverse_hash import InverseHash
from onlineauto.workspace.inspection.named_examples import NamedExamples
from onlineauto.workspace.model_file import VERSION, read_file
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onlineauto.options import Configuration
    from onlineauto.workspace.workspace import Workspace


def run(configuration: Configuration) -> int:
    """Print the content of the first file, a model, and return 0; other files are events with names."""
    model, *events = configuration[InputOptions].data or ("",)
    if not model:
        raise OptionError(
            "inspect takes a model, and files of events to learn names from: onlineauto inspect m"
        )
    reading = {name: configuration.get(name) for name in _reading_options() if name in configuration.supplied}
    workspace, run = load_any_model(model, REGISTRY.from_keywords(testonly=True, **reading))
    names = {int(number): name for number, name in run.get("names", ())}
    names |= _names_in(workspace, events)
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
    content |= inspection(workspace, names=names, top=options.largest)
    if options.format == "json":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(content), indent=1).decode() + "\n")
    elif options.format == "markdown":
        sys.stdout.write(markdown(tables_of(content)))
    else:
        print_tables(tables_of(content))
        if content["top_weights"] and not any(each["name"] for each in content["top_weights"]):
            print(f"names of weights: onlineauto inspect {model} FILE, with events", file=sys.stderr)
    return 0


def _reading_options() -> list[str]:
    """Return the options for reading events, which a model does not store."""
    return [*FORMATS, "chain_hash", "compressed"]


def _names_in(workspace: Workspace, events: Sequence[str]) -> dict[int, str]:
    """Return the names of the weights that the events in files use."""
    inverse, names = InverseHash(workspace), line_names(workspace.configuration)
    examples = NamedExamples(workspace, names)
    for path in events:
        for block in named_blocks(path, workspace.configuration, Diagnostics(), names=names):
            inverse.note(inverse.names_of_weights(examples.examples_of(block)))
    return inverse.names
