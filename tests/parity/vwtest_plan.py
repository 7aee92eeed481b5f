"""Choose those of VW's own tests that onlineauto supports, translate their flags, and compare outputs.

The rule of comparison is that of VowpalWabbit/vowpal_wabbit, test/run_tests.py, ``--fuzzy_compare``.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from onlineauto.engine.options.registry import ModelOptions
from onlineauto.errors import OptionError
from onlineauto.formats.options import InputOptions
from onlineauto.workspace.options import REGISTRY

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

EPSILON = 1e-4
"""The runner's default tolerance."""
_WORDS = re.compile(r"[ \t:,@=\[\]]+|(?<=\d)-(?=-?\d)")
_MARKS = re.compile(r"[:,@\[\]]+")


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def same_number(actual: float, reference: float, *, epsilon: float = EPSILON) -> bool:
    """Return whether two numbers count as equal: absolutely, or relatively if the second is larger than 1."""
    if (math.isinf(actual) and math.isinf(reference)) or (math.isnan(actual) and math.isnan(reference)):
        return True
    if abs(actual - reference) < epsilon:
        return True
    return abs(reference) > 1 and abs(actual / reference - 1) < epsilon


def _same_word(actual: str, reference: str, *, epsilon: float) -> bool:
    number, expected = _number(actual), _number(reference)
    if number is None or expected is None:
        return actual == reference
    return same_number(number, expected, epsilon=epsilon)


def _same_line(actual: str, reference: str, *, epsilon: float) -> bool:
    words, expected = (_WORDS.split(line.replace("...", "")) for line in (actual, reference))
    return (
        len(words) == len(expected)
        and _MARKS.findall(actual) == _MARKS.findall(reference)
        and all(_same_word(a, b, epsilon=epsilon) for a, b in zip(words, expected, strict=True))
    )


def difference(actual: str, reference: str, *, epsilon: float = EPSILON) -> str | None:
    """First difference between two texts by the runner's rule; None if it would let them pass."""
    lines, expected = ([line.strip() for line in text.strip().splitlines()] for text in (actual, reference))
    for number, (a, b) in enumerate(zip(lines, expected, strict=False), start=1):
        if not _same_line(a, b, epsilon=epsilon):
            return f"line {number}: reference {b!r}, ours {a!r}"
    if len(lines) != len(expected):
        longer = expected if len(expected) > len(lines) else lines
        first = longer[min(len(lines), len(expected))]
        sizes = f"reference has {len(expected)} lines, ours {len(lines)}"
        return f"{sizes}; the first without a partner is {first!r}"
    return None


class NotCovered(Exception):  # noqa: N818 - a reason, not an error
    """Raised for a test that is not run; the message is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The plan of a test: its command line and files."""

    argv: tuple[str, ...]  # words of the command line, for exact mode and VW
    stripped: tuple[str, ...]  # flags of VW's that were left out
    # reference file, in the checkout's ``test``, of each output: ``stderr``, ``stdout`` or a file
    compared: dict[str, str]
    written: tuple[str, ...] = ()  # files that it writes
    first: tuple[Plan, ...] = ()  # what has to be run before, in the same directory


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
    """Return the tests that a test continues from, each once, in the order in which they must run."""
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
    """Return how to run an entry of ``core.vwtest.json``, given all entries by id, or raise `NotCovered`."""
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
