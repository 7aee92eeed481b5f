"""The verb ``convert``: between text and block files, and between models of Vowpal Wabbit and onlineauto."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from onlineauto.automl.options import AutomlOptions
from onlineauto.cli.terminal import warn, warn_of_effects
from onlineauto.engine.options.registry import OutputOptions
from onlineauto.errors import OptionError
from onlineauto.explorers.options import choose_explorer
from onlineauto.formats.lines.diagnostics import Diagnostics
from onlineauto.formats.options import InputOptions
from onlineauto.interop.vw.champion import write_vw_model
from onlineauto.interop.vw.file import begins_as_vw
from onlineauto.interop.vw.model import load_vw_model
from onlineauto.workspace.conversion import convert, has_blocks
from onlineauto.workspace.model_file import MAGIC
from onlineauto.workspace.save_load import load_model, save_model
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    from onlineauto.engine.stream.source import Sources
    from onlineauto.options import Configuration

_EVENTS, _BLOCKS, _OURS, _VW = "text", "blocks", "a model of onlineauto", "a model of Vowpal Wabbit"
_TEXTS = {".txt", ".vw", ".json", ".jsonl", ".dsjson", ".csv", ".parquet"}
"""Endings of names that no file of blocks should have."""
_BECOMES = {_EVENTS: _BLOCKS, _BLOCKS: _EVENTS, _OURS: _VW, _VW: _OURS}
"""Maps each kind of file to the kind of its conversion."""


def run(configuration: Configuration) -> int:
    """Convert all files but the last into the last; return 0."""
    *inputs, output = configuration[InputOptions].data or ("",)
    if not inputs or output == "-":
        raise OptionError(
            "convert takes the files to read and, last, the file to write: onlineauto convert events.txt "
            "events.blocks"
        )
    kind = _kind(inputs[0])
    target = _BECOMES[kind]
    if Path(output).exists() and (target == _EVENTS or _kind(output) != target):
        raise OptionError(f"{output} exists and would be overwritten: remove it, or name another file")
    if target == _BLOCKS and Path(output).suffix in _TEXTS:
        raise OptionError(
            f"{output} would be a file of blocks, which is what {inputs[0]} can be converted to: name it "
            f"{Path(output).with_suffix('.blocks')}; blocks can then be converted to text"
        )
    if kind in (_OURS, _VW):
        result = _convert_model(inputs, output, configuration, kind=kind)
    else:
        result = f"{_convert_events(inputs, output, configuration)} events, as {target}"
    if not configuration[OutputOptions].quiet:
        _print(f"{result} of {Path(output).stat().st_size} bytes, are in {output}")
    return 0


def _kind(path: str) -> str:
    """Return the kind of a file, recognised by its first bytes."""
    if has_blocks(path):
        return _BLOCKS
    if path == "-" or not Path(path).is_file():
        return _EVENTS
    with Path(path).open("rb") as file:
        begin = file.read(16)
    return _OURS if begin.startswith(MAGIC) else _VW if begins_as_vw(begin) else _EVENTS


def _convert_model(inputs: list[str], output: str, configuration: Configuration, *, kind: str) -> str:
    """Convert one model; return a description of the result."""
    if len(inputs) > 1:
        raise OptionError("models are converted one by one")
    quiet, result = configuration[OutputOptions].quiet, _BECOMES[kind]
    if kind == _VW:
        workspace, its_run = load_vw_model(inputs[0], configuration)
        save_model(workspace.state(copy=False), output, run=its_run)
    else:
        workspace, _ = load_model(Workspace, inputs[0], configuration)
        write_vw_model(workspace, output)
        explorer = choose_explorer(workspace.configuration).name if "explore" in workspace.kind else ""
        if workspace.configuration[AutomlOptions].automl is not None:
            result = f"{result}, the champion alone,"
        if explorer == "scaled_squarecb" and not quiet:
            warn(
                "Vowpal Wabbit has no --scaled_squarecb, the explorer of this model: it will explore with "
                "ε-greedy"
            )
    if not quiet:
        warn_of_effects(configuration, workspace.configuration)
    return f"{int(workspace.learner.model.touched.sum())} learnt cells, as {result}"


def _convert_events(inputs: list[str], output: str, configuration: Configuration) -> int:
    """Convert events; return their number."""
    quiet = configuration[OutputOptions].quiet
    if not quiet:
        warn_of_effects(configuration, configuration)
    diagnostics = Diagnostics(listener=None if quiet else _print)
    source: Sources = inputs[0] if len(inputs) == 1 else [_source(path) for path in inputs]
    n = convert(source, output, diagnostics=diagnostics, configuration=configuration)
    if not quiet and diagnostics.total:
        warn(f"{diagnostics.total} problems in the input")
    return n


def _source(path: str) -> Path:
    if path == "-":
        raise OptionError("standard input is converted alone, without other files")
    return Path(path)


def _print(line: object) -> None:
    print(line, file=sys.stderr)
