"""Which of VW's own tests use only what onlineauto has, and with which flags we run them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from onlineauto.engine.options import REGISTRY
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["NotCovered", "Plan", "plan"]

_STRIPPED: Final = {
    "-c": 0,
    "--cache": 0,
    "-k": 0,
    "--kill_cache": 0,
    "--cache_file": 1,
    "-f": 1,
    "--final_regressor": 1,
    "--predict_only_model": 0,
    "--onethread": 0,
    "--example_queue_limit": 1,
}
"""Flags that change nothing that is compared, and how many words follow them: our passes read the input
again, models are saved after the last event, threads and what they read ahead change no number."""

_MODEL_FILES: Final = ("-i", "--initial_regressor", "--readable_model", "--invert_hash")
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
    """

    argv: tuple[str, ...]
    stripped: tuple[str, ...]
    compared: dict[str, str]


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
        if flag in _MODEL_FILES:
            raise NotCovered(f"model files: another issue ({flag})")
        if flag is not None and flag not in known:
            raise NotCovered(f"not covered: {flag}")
        kept.append(words[at])
        at += 1
    return kept, stripped


def _check_files(test: Mapping[str, Any], root: Path) -> None:
    for name in test.get("input_files", ()):
        path = root / name
        if not path.is_file():
            raise NotCovered("needs another test's output" if test.get("depends_on") else "data file missing")
        with path.open("rb") as file:
            if file.read(len(_POINTER)) == _POINTER:
                raise NotCovered("data file missing")


def _compared(test: Mapping[str, Any], *, argv: list[str]) -> dict[str, str]:
    """Outputs to compare: the log that VW writes to standard output is not one, predictions there are."""
    found = dict(test.get("diff_files", {}))
    if not {"stdout", "/dev/stdout"} & set(argv):
        found.pop("stdout", None)
    if not found:
        raise NotCovered("nothing to compare but the log")
    return found


def plan(test: Mapping[str, Any], *, root: Path) -> Plan:
    """Decide how to run a test.

    Parameters
    ----------
    test : mapping
        An entry of ``core.vwtest.json``.
    root : Path
        The checkout's ``test``.

    Raises
    ------
    NotCovered
        If we have not what it needs.
    """
    if "vw_command" not in test:
        raise NotCovered("a shell script")
    kept, stripped = _split(shlex.split(test["vw_command"]))
    try:
        configuration = REGISTRY.parse(kept)
    except OptionError as error:
        raise NotCovered(f"refused: {error}") from error
    if configuration.get("help"):
        raise NotCovered("the text of the help")
    data = configuration[InputOptions].data
    if not data:
        raise NotCovered("no input file")
    if len(data) > 1:
        raise NotCovered("several data files: VW refuses them, or reads the first only")
    _check_files(test, root)
    compared = _compared(test, argv=kept)
    return Plan(argv=tuple(kept), stripped=tuple(stripped), compared=compared)
