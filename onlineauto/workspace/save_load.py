"""Save a workspace to a model file, and load one."""

from __future__ import annotations

import os
from io import TextIOBase
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    BinaryIO,
    Literal,
    NamedTuple,
    NotRequired,
    TypeAlias,
    TypedDict,
)

from msgspec import Meta, ValidationError

from onlineauto.engine.loop.holdout import Holdout
from onlineauto.engine.loop.semantics import semantics_of
from onlineauto.engine.options.registry import RunOptions
from onlineauto.engine.report.metrics import Metrics
from onlineauto.engine.report.progress import ProgressTable
from onlineauto.errors import InputError, OptionError, short_repr
from onlineauto.state.stored import MOST, Stored
from onlineauto.workspace.model_file import decode_tree, encode_tree, read_file, replace_file
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from onlineauto.options import Configuration
    from onlineauto.workspace.model_file import State
    from onlineauto.workspace.workspace import Workspace

SECTIONS = {"learner": 1, "layout": 1, "slots": 1, "search": 1, "run": 1, "explorer": 1}
"""Sections of a model file, each with the version that is written; versions up to that can be read.

The section of the search contains the ensemble and its members, which have separate versions.
"""

ModelSource: TypeAlias = str | os.PathLike[str] | bytes | BinaryIO
"""A path, the bytes of a model file, or an open binary file."""

_Count = Annotated[int, Meta(ge=0, le=MOST)]
_Counts = dict[str, bool | int | float | None]


class _Output(NamedTuple):
    """A file to which a run appends, and the number of bytes written so far."""

    path: Annotated[str, Meta(min_length=1)]
    size: _Count


class _Outputs(TypedDict, total=False):
    """Files of a run; the paths are only compared: a resumed run continues those of its own command line."""

    predictions: _Output
    raw_predictions: _Output
    journal: _Output


class _Position(TypedDict):
    passes: _Count
    events: _Count
    held_out: _Counts | None
    at: NotRequired[dict[str, Any] | None]  # the source checks the values


_RUN: dict[str, Any] = {
    "position": _Position,
    "rest_of_round": _Count,
    "change": tuple[_Count, list[tuple[float, float, float]]],
    "progress": _Counts,
    "metrics": _Counts,
    "outputs": _Outputs,
    "names": list[tuple[_Count, str]],
    "api": dict[str, Any],
    "service": dict[str, Any],
    "dataset": dict[Literal["columns", "types"], dict[str, Any]],
}
"""The types of a stored run's values, by name; the classes of those of "api" and "service" check them."""


def stored_run(stored: Stored, workspace: Workspace) -> dict[str, Any]:
    """Return the stored state of a run: its position, counters, outputs and names, as far as present."""
    run = {name: stored[name].convert(kind) for name, kind in _RUN.items() if name in stored}
    configuration, kind = workspace.configuration, workspace.kind
    if "position" in run and run["position"]["held_out"] is not None:
        Holdout(configuration[RunOptions]).recount(run["position"]["held_out"])
    if "progress" in run:
        ProgressTable(configuration, kind=kind).recount(run["progress"])
    if "metrics" in run:
        Metrics(configuration, kind=kind, semantics=workspace.semantics).recount(run["metrics"])
    return run


def save_model(
    state: Mapping[str, Any], target: str | os.PathLike[str] | BinaryIO, *, run: State | None = None
) -> None:
    """Write the state of a workspace, and of the run that uses it, to a file."""
    from importlib.metadata import version

    is_binary = hasattr(target, "write") and not isinstance(target, TextIOBase)
    if not (isinstance(target, str | os.PathLike) or is_binary):
        raise OptionError(
            f"cannot save to {short_repr(target)}: give a path, or a binary file that is open for writing"
        )
    program = f"onlineauto {version('onlineauto')}"
    parts = encode_tree({"program": program, "versions": SECTIONS, "model": state, "run": run or {}})
    if isinstance(target, str | os.PathLike):
        replace_file(target, parts)
    else:
        for part in parts:
            target.write(part)


def check_options(configuration: Configuration) -> None:
    """Check that a model file can keep options, so that a long run does not fail at its end."""
    try:
        (text := configuration.command(kept=True)).encode()
    except UnicodeEncodeError:
        raise OptionError(f"no model file can keep the options {text!r}: texts in it are UTF-8") from None


def _read(source: ModelSource) -> tuple[State, str]:
    """Return the tree of a model file, and the name of the file for messages."""
    if isinstance(source, str | os.PathLike):
        tree, name = read_file(source), os.fspath(source)
    elif not isinstance(source, bytes) and not hasattr(source, "read"):
        raise OptionError(
            f"cannot load {short_repr(source)}: give a path, the bytes of a model, or a binary file"
        )
    else:
        name = "the model" if isinstance(source, bytes) else str(getattr(source, "name", "the model"))
        tree = decode_tree(source if isinstance(source, bytes) else source.read(), name=name)
    if not isinstance(tree.get("model"), dict) or not isinstance(tree["model"].get("options"), str):
        raise InputError(f"{name} is not a model file that this program understands: it has no options")
    _check_versions(Stored(tree), name)
    return tree, name


def _check_versions(stored: Stored, name: str) -> None:
    """Check that no section of a tree is of a later version."""
    try:
        versions = stored["versions"].convert(dict[str, int])
    except ValueError as error:
        raise InputError(f"{name} is not a valid model: {_one_line_message(error)}") from None
    later = [section for section, version in versions.items() if version > SECTIONS.get(section, 0)]
    if later:
        raise InputError(
            f"{name} was written by a later onlineauto: this program does not know the version of its "
            f"section {', '.join(later)}; load it with that version or a later one"
        )


def _stored_options(configuration: Configuration, tree: State, *, name: str) -> Configuration:
    """Return the options of a stored model, with those of `configuration` added; `name` is for messages."""
    try:
        stored = REGISTRY.parse_kept(tree["model"]["options"])
    except OptionError as error:
        raise InputError(f"{name} is not a valid model: {_one_line_message(error)}") from None
    return with_changed_options(stored, configuration, name=name)


def with_changed_options(stored: Configuration, configuration: Configuration, *, name: str) -> Configuration:
    """Return the options of a model, replaced by those of `configuration` where they differ."""
    supplied = {
        option.name: stored.get(option.name) for option in REGISTRY.options if option.name in stored.supplied
    }
    replaced = semantics_of(stored).replaced_options
    for option in REGISTRY.options:
        if option.name not in configuration.supplied:
            continue
        value, before = configuration.get(option.name), stored.get(option.name)
        overridden = option.override or option.name in replaced
        if option.keep and value != before and not overridden:
            nothing = before is None or before is False or before == ()
            made_with = "without it" if nothing else f"with {_flag_text(option.flag, before)}"
            raise OptionError(
                f"cannot use {_flag_text(option.flag, value)}: {name} was made {made_with}; leave it out"
            )
        supplied[option.name] = value
    return REGISTRY.from_keywords(**supplied)


def _flag_text(flag: str, value: object) -> str:
    """Return a flag with its value as on a command line."""
    if isinstance(value, bool):
        return flag if value else f"no {flag}"
    values = value if isinstance(value, tuple | list) else (value,)
    return " ".join(f"{flag} {item}" for item in values)


def load_model(
    make: Callable[..., Workspace], source: ModelSource, configuration: Configuration
) -> tuple[Workspace, State]:
    """Return the workspace of a model file, and the stored state of the run that saved it."""
    tree, name = _read(source)
    workspace = make(configuration=_stored_options(configuration, tree, name=name))
    try:
        workspace.restore(tree["model"])
        return workspace, stored_run(Stored(tree.get("run", {}), "run"), workspace)
    except OptionError:
        raise
    except (ValueError, ValidationError) as error:  # the file is complete, but forged or of another program
        raise InputError(f"{name} does not fit its own options: {_one_line_message(error)}") from None


def _one_line_message(error: Exception) -> str:
    """Return the message of an error in one line, since it may quote a file with newlines."""
    return " ".join(str(error).split())
