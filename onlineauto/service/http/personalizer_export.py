"""``read_export`` and ``start_from``: a service's folder from what Personalizer exports.

An export is a folder with the log, which is dsjson, and perhaps the configuration and the policy: the
answers of ``GET /configurations/service`` and ``GET /configurations/policy``, or the learning settings that
the portal saves. The content of a file tells what it is.
"""

from __future__ import annotations

import gzip
import io
import shlex
import zlib
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from onlineauto.engine.options.registry import ModelOptions, OutputOptions
from onlineauto.errors import InputError, OptionError
from onlineauto.formats.decisions.dsjson import decision_line, label_of
from onlineauto.formats.options import InputOptions
from onlineauto.options import options_of
from onlineauto.service.http.personalizer import PolicyContract, ServiceConfiguration, settings_in, words_of
from onlineauto.service.loop.front import ignore_completion
from onlineauto.service.loop.loop import Loop, service_configuration
from onlineauto.service.loop.slots import SLOT
from onlineauto.workspace.options import REGISTRY
from onlineauto.workspace.workspace import Workspace

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence

    from onlineauto.options import Configuration

_MODEL: Final = "put-personalizer"
_CHUNK: Final = 1 << 23
_AUTOML: Final = ("--automl", "4")
_OTHER_NAMES: Final = {
    option.name for group in (OutputOptions, ModelOptions, InputOptions) for option in options_of(group)
}


class Export(NamedTuple):
    """An export: the files of its log in order, its configuration, and its policy."""

    logs: list[Path]
    configuration: ServiceConfiguration | None
    policy: PolicyContract | None


class Imported(NamedTuple):
    """The result of an import: numbers of learnt decisions and of other lines, and the model's options."""

    learnt: int
    skipped: int
    options: str


class _Outcome(msgspec.Struct):
    cost: float = msgspec.field(name="_label_cost")
    actions: list[int] = msgspec.field(name="_a")
    probabilities: list[float] = msgspec.field(name="_p")


class _Line(msgspec.Struct):
    outcomes: list[_Outcome] = msgspec.field(name="_outcomes")
    context: dict[str, msgspec.Raw] = msgspec.field(name="c")


def read_export(folder: str | os.PathLike[str]) -> Export:
    """Return the files of an export, by their content."""
    logs: list[Path] = []
    configuration: ServiceConfiguration | None = None
    policy: PolicyContract | None = None
    for path in sorted(each for each in Path(folder).rglob("*") if each.is_file()):
        with _opened(path) as file:
            line = file.readline(1 << 20).lstrip(b"\xef\xbb\xbf \t\r\n")
            if line.startswith(b"{") and (b'"c":' in line or b'"EventId":' in line):
                logs.append(path)
            elif line.startswith(b"{") and path.stat().st_size < (1 << 20):
                content = _decoded(path.read_bytes())
                if "rewardWaitTime" in content:
                    configuration = msgspec.convert(content, ServiceConfiguration)
                elif "arguments" in content:
                    policy = PolicyContract(str(content.get("name", "")), str(content["arguments"]))
    if not logs:
        raise InputError(
            f"{folder} has no log of Personalizer: files of lines of dsjson, with or without .gz"
        )
    return Export(logs, configuration, policy)


def options_in(export: Export) -> tuple[list[str], list[str], list[str]]:
    """Return the options of a policy as words, those that do not exist, and those that the search chooses."""
    words, dropped, searched = ["--cb_explore_adf"], list[str](), list[str]()
    epsilon = _epsilon_of(export)
    others = _OTHER_NAMES if epsilon is None else {*_OTHER_NAMES, "epsilon"}
    for group in _groups(words_of("" if export.policy is None else export.policy.arguments)):
        try:
            supplied = REGISTRY.parse(["--cb_explore_adf", *group]).supplied
        except OptionError:
            dropped.append(shlex.join(group))
            continue
        if "automl" not in supplied and not _can_search(group):
            searched.append(shlex.join(group))
            continue
        if not supplied & others:
            words += [word for word in group if word != "--cb_explore_adf"]
    if epsilon is not None:
        words += ["--epsilon", f"{epsilon:g}"]
    if "--automl" not in words:
        words += _AUTOML
    return words, dropped, searched


def _can_search(group: list[str]) -> bool:
    """Return whether a model with this option can search."""
    try:
        REGISTRY.parse(["--cb_explore_adf", *_AUTOML, *group])
    except OptionError:
        return False
    return True


def start_from(export: Export, folder: str | os.PathLike[str], configuration: Configuration) -> Imported:
    """Learn the log of an export, and begin a service's folder with this model and the export's settings."""
    if (Path(folder) / "log").exists():
        raise InputError(f"{folder} is the folder of a service already: give another one")
    settings = {} if export.configuration is None else settings_in(export.configuration)
    workspace, learnt = Workspace(configuration=service_configuration(configuration)), 0
    for chunk in _chunks(export.logs):
        for block, _ in workspace.stream(io.BytesIO(chunk)):
            learnt += len(block)
    if not learnt:
        raise InputError("the log has no decision that can be learnt")
    file = io.BytesIO()
    workspace.save(file)
    loop = Loop(folder, configuration, settings=settings)
    try:
        loop.put_model(_MODEL, file.getvalue(), ignore_completion)
    finally:
        loop.close()
    return Imported(learnt, workspace.diagnostics.total, loop.join.settings.options)


def slot_lines(line: bytes) -> list[bytes]:
    r"""Return a line of dsjson with slots as a line for each slot, like those that a service learns.

    >>> event = b'{"c":{"_multi":[{"a":1},{"b":1}],"_slots":[{"_id":"top"}]},"_outcomes":[{"_label_cost":-1,'
    >>> event += b'"_a":[1,0],"_p":[0.8,0.2]}]}'
    >>> label, context = slot_lines(event)[0].split(b',"c":')
    >>> print(label.decode(), context.decode(), sep="\n")
    {"_label_cost":-1.0,"_label_probability":0.8,"_label_Action":2,"_labelIndex":1
    {"slot":{"top":1},"_multi":[{"a":1},{"b":1}]}}
    <BLANKLINE>
    """
    parsed = msgspec.json.decode(line, type=_Line)
    shared = {name: value for name, value in parsed.context.items() if name not in ("_multi", "_slots")}
    actions = msgspec.json.decode(parsed.context["_multi"], type=list[msgspec.Raw])
    slots = msgspec.json.decode(parsed.context["_slots"], type=list[dict[str, msgspec.Raw]])
    lines, shown = [], set[int]()
    for number, (slot, outcome) in enumerate(zip(slots, parsed.outcomes, strict=True)):
        name = msgspec.json.decode(slot["_id"], type=str) if "_id" in slot else str(number)
        every = range(len(actions))
        inside = msgspec.json.decode(slot["_inc"], type=list[int]) if "_inc" in slot else every
        left = [action for action in every if action in inside and action not in shown]
        chosen = outcome.actions[0]
        index = left.index(chosen)
        own = {key: value for key, value in slot.items() if not key.startswith("_")}
        context = {**shared, **own, SLOT: {name: 1}, "_multi": [actions[action] for action in left]}
        label = label_of(outcome.cost, outcome.probabilities[0], index)
        lines.append(decision_line(label, msgspec.json.encode(context)) + b"\n")
        shown.add(chosen)
    return lines


def _chunks(paths: Sequence[Path]) -> Iterator[bytes]:
    """Yield the lines of files, some megabytes at once, with slots as lines of their own."""
    lines: list[bytes] = []
    size = 0
    for path in paths:
        with _opened(path) as file:
            for line in file:
                whole = line if line.endswith(b"\n") else line + b"\n"
                parts = [whole]
                if b'"_slots"' in line:
                    with suppress(ValueError, LookupError, RecursionError, msgspec.MsgspecError):
                        parts = slot_lines(line)  # a line that has none is counted when it is learnt
                lines += parts
                size += sum(map(len, parts))
                if size > _CHUNK:
                    yield b"".join(lines)
                    lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _groups(words: Sequence[str]) -> Iterator[list[str]]:
    """Yield each flag with its values."""
    group: list[str] = []
    for word in words:
        is_flag = word.startswith("-") and not word[1:2].isdigit() and word[1:2] != "."
        if is_flag and group:
            yield group
            group = []
        group.append(word)
    if group:
        yield group


def _epsilon_of(export: Export) -> float | None:
    wanted = None if export.configuration is None else export.configuration.exploration_percentage
    return wanted if isinstance(wanted, float) else None


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            yield file
    except (OSError, EOFError, zlib.error, msgspec.ValidationError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None


def _decoded(content: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
