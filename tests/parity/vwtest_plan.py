"""Which of VW's own tests use only what onlineauto has, and with which flags we run them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onlineauto.engine.options.registry import ModelOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.workspace.options import REGISTRY

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_STRIPPED: Final = {
    "-c": 0,
    "--cache": 0,
    "-k": 0,
    "--kill_cache": 0,
    "--cache_file": 1,
    "--onethread": 0,
    "--example_queue_limit": 1,
}
"""Flags that change nothing that is compared, and how many words follow them: our passes read the input
again, threads change no number."""

_WRITTEN: Final = ("final_regressor", "readable_model", "invert_hash", "predictions", "raw_predictions")
_NEGATIVE: Final = re.compile(r"-[.\d]")
_POINTER: Final = b"version https://git-lfs"


class NotCovered(Exception):  # noqa: N818 - a reason, not an error
    """Why a test is not run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a test is run.

    Attributes
    ----------
    argv : tuple of str
        Words of the command line, ours and the wheel's.
    stripped : tuple of str
        Flags of VW's that were left out.
    compared : dict of str to str
        Reference file, in the checkout's ``test``, of each output: ``stderr``, ``stdout`` or a file.
    written : tuple of str
        Files that it writes.
    first : tuple of Plan
        What has to be run before, in the same directory.
    """

    argv: tuple[str, ...]
    stripped: tuple[str, ...]
    compared: dict[str, str]
    written: tuple[str, ...] = ()
    first: tuple[Plan, ...] = ()


def _flag(word: str) -> str | None:
    """Flag that a word is, without an attached value; None if it is none."""
    if len(word) < 2 or not word.startswith("-") or _NEGATIVE.match(word):
        return None
    return word.partition("=")[0] if word.startswith("--") else word[:2]


def _known() -> set[str]:
    short = {f"-{option.short}" for option in REGISTRY.options if option.short}
    return short | {f"--{option.name}" for option in REGISTRY.options}


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Part a command line into the words that we take and the flags that are left out."""
    kept: list[str] = []
    stripped: list[str] = []
    known = _known()
    at = 0
    while at < len(words):
        flag = _flag(words[at])
        if flag in _STRIPPED:
            stripped.append(flag)
            at += 1 if "=" in words[at] else 1 + _STRIPPED[flag]
            continue
        if flag is not None and flag not in known:
            raise NotCovered(f"not covered: {flag}")
        kept.append(words[at])
        at += 1
    return kept, stripped


def _check_files(test: Mapping[str, Any], root: Path, made: set[str]) -> None:
    for name in {*test.get("input_files", ())} - made:
        path = root / name
        if not path.is_file():
            raise NotCovered("needs another test's output" if test.get("depends_on") else "data file missing")
        with path.open("rb") as file:
            if file.read(len(_POINTER)) == _POINTER:
                raise NotCovered("data file missing")


def _check_models(models: tuple[str, ...], made: set[str]) -> None:
    if set(models) - made:
        raise NotCovered("begins with a model file of Vowpal Wabbit's: `onlineauto convert` reads those")


def _plans_before(test: Mapping[str, Any], root: Path, others: Mapping[int, Mapping[str, Any]]) -> list[Plan]:
    """What a test goes on from, each once, in the order in which they have to be run."""
    plans: list[Plan] = []
    for number in test.get("depends_on") or ():
        if number not in others:
            raise NotCovered("needs another test's output")
        try:
            before = plan(others[number], root=root, others=others, compares=False)
        except NotCovered as reason:
            raise NotCovered(f"goes on from a test that is not covered: {reason}") from reason
        plans += [each for each in (*before.first, before) if each not in plans]
    return plans


def _compared(test: Mapping[str, Any], *, argv: list[str]) -> dict[str, str]:
    """Outputs to compare: the log that VW writes to standard output is not one, predictions there are."""
    found = dict(test.get("diff_files", {}))
    if not {"stdout", "/dev/stdout", "-a", "--audit"} & set(argv):
        found.pop("stdout", None)
    if not found:
        raise NotCovered("nothing to compare but the log")
    return found


def plan(
    test: Mapping[str, Any],
    *,
    root: Path,
    others: Mapping[int, Mapping[str, Any]] | None = None,
    compares: bool = True,
) -> Plan:
    """Decide how to run a test.

    Parameters
    ----------
    test : mapping
        An entry of ``core.vwtest.json``.
    root : Path
        The checkout's ``test``.
    others : mapping, optional
        All entries by number, for tests that go on from another one's model.
    compares : bool
        Whether it has to have an output to compare.

    Raises
    ------
    NotCovered
        If we have not what it needs.
    """
    if "vw_command" not in test:
        raise NotCovered("a shell script")
    kept, stripped = _split(shlex.split(test["vw_command"]))
    try:
        configuration = REGISTRY.parse([*kept, "--vw_exact"])
    except OptionError as error:
        raise NotCovered(f"refused: {error}") from error
    if configuration.get("help"):
        raise NotCovered("the text of the help")
    data = configuration[InputOptions].data
    if not data:
        raise NotCovered("no input file")
    if len(data) > 1:
        raise NotCovered("several data files: VW refuses them, or reads the first only")
    first = _plans_before(test, root, others or {})
    made = {name for each in first for name in each.written}
    _check_models(configuration[ModelOptions].initial_regressor, made)
    _check_files(test, root, made)
    return Plan(
        argv=tuple(kept),
        stripped=tuple(stripped),
        compared=_compared(test, argv=kept) if compares else {},
        written=tuple(str(configuration.get(name)) for name in _WRITTEN if configuration.get(name)),
        first=tuple(first),
    )
