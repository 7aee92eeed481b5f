"""Labels of slots in text, the slow and obvious way, in both modes."""

from __future__ import annotations

import re

import numpy as np

from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.lines import NOTHING, BadLineError, FatalError, Line
from tests.naive.numbers import label_number, probability_problem, vw_number, vw_probability
from tests.naive.slots import CONFINED

Words = list[tuple[bytes, int]]
"""Words and where they are."""

KINDS = (b"shared", b"action", b"slot")


def read_slot_words(words: Words, line: Line, end: int, problems: list[tuple[ProblemCode, int]]) -> None:
    """Read the label of a line; if there are no words, their place is the `end`."""
    words = list(words)
    begin = words[0][1] if words else end
    if len(words) < 2 or words[0][0] != b"ccb" or words[1][0] not in KINDS:
        raise BadLineError(ProblemCode.SLOT_LABEL, begin)
    kind = words[1][0]
    line.shared, line.slot = kind == b"shared", kind == b"slot"
    rest = words[2:]
    if line.slot and rest and b":" in rest[0][0]:
        outcome = _outcome(*rest.pop(0), problems)
        line.costs += [outcome] if outcome else []
    if line.slot and rest:
        word, column = rest.pop(0)
        for part, at in _parts(word, column):
            line.costs.append((_action(part, at), NOTHING, CONFINED))
    if rest:
        raise BadLineError(ProblemCode.SLOT_LABEL, rest[0][1])


def _parts(word: bytes, column: int) -> Words:
    """Parts between commas, but for an empty one at the end."""
    found = [(match[1], column + match.start()) for match in re.finditer(rb"([^,]*)(,|$)", word)]
    return [part for part in found if part[0] or part[1] < column + len(word)]


def _action(word: bytes, column: int) -> int:
    if not re.fullmatch(rb"[0-9]{1,9}", word):
        raise BadLineError(ProblemCode.ACTION_NOT_A_NUMBER, column)
    return int(word)


def _finite(
    word: bytes, column: int, kind: str, problems: list[tuple[ProblemCode, int]]
) -> np.float32 | None:
    """A number of a label; None if it is not finite, which is a problem."""
    try:
        return label_number(word, column, kind)
    except BadLineError as bad:
        if bad.code != ProblemCode[f"{kind}_NOT_FINITE"]:
            raise
        problems.append((bad.code, column))
        return None


def _outcome(
    word: bytes, column: int, problems: list[tuple[ProblemCode, int]]
) -> tuple[int, float, float] | None:
    """What was logged of a slot; None if a number of it is not finite."""
    first, *others = _parts(word, column)
    parts = first[0].split(b":")
    if not 2 <= len(parts) <= 3:
        raise BadLineError(ProblemCode.SLOT_OUTCOME, column)
    action = _action(parts[0], column)
    at = column + len(parts[0]) + 1
    cost = _finite(parts[1], at, "COST", problems)
    if cost is None:
        return None
    if len(parts) == 2:
        raise BadLineError(ProblemCode.NO_PROBABILITY, column)
    at += len(parts[1]) + 1
    probability = _finite(parts[2], at, "PROBABILITY", problems)
    if probability is None:
        return None
    if problem := probability_problem(probability):
        raise BadLineError(problem, at)
    total = float(probability)
    for other, place in others:
        name, colon, value = other.partition(b":")
        if not colon:
            raise BadLineError(ProblemCode.SLOT_OUTCOME, place)
        _action(name, place)
        place += len(name) + 1
        more = _finite(value, place, "PROBABILITY", problems)
        if more is not None and more < 0:
            raise BadLineError(ProblemCode.PROBABILITY_NEGATIVE, place)
        total += np.nan if more is None else float(more)
    if np.isnan(total):
        return None
    if b"," in word and abs(total - 1) >= 1e-4:
        raise BadLineError(ProblemCode.SLOT_SUM, column)
    return action, float(cost), float(probability)


def read_vw_slot_words(
    content: bytes, words: Words, begin: int, line: Line, problems: list[tuple[ProblemCode, int]]
) -> None:
    """Read the label of a line, which begins at `begin`, as VW does."""
    kind = words[1][0] if len(words) > 1 else b""
    line.shared, line.slot = kind == b"shared", kind == b"slot"
    known = kind in KINDS and words[0][0] == b"ccb"
    if not known or len(words) > (4 if line.slot else 2):
        raise FatalError(ProblemCode.SLOT_LABEL, begin)
    outcomes = [word for word in words[2:] if b":" in word[0]]
    for i, (word, column) in enumerate(outcomes):
        if i > 0:
            raise FatalError(ProblemCode.SLOT_LABEL, words[1][1] + len(kind))
        line.costs.append(_vw_outcome(content, word, column, problems))
    for word, column in words[2:]:
        if b":" not in word:
            for part, at in _vw_parts(word, column, b","):
                line.costs.append((_vw_action(part, at, problems), NOTHING, CONFINED))


def _vw_parts(word: bytes, column: int, separator: bytes) -> Words:
    """Parts that are not empty."""
    return [(match[0], column + match.start()) for match in re.finditer(rb"[^" + separator + rb"]+", word)]


def _vw_action(word: bytes, column: int, problems: list[tuple[ProblemCode, int]]) -> int:
    match = re.match(rb"[+-]?[0-9]+", word)
    if match is None:
        problems.append((ProblemCode.VW_INT, column))
        return 0
    return int(match[0]) % 2**32


def _vw_outcome(
    content: bytes, word: bytes, column: int, problems: list[tuple[ProblemCode, int]]
) -> tuple[int, float, float]:
    parts = _vw_parts(word, column, b",")
    first = _vw_parts(*parts[0], b":")
    if len(first) != 3:
        raise FatalError(ProblemCode.SLOT_OUTCOME, column)
    action = _vw_action(*first[0], problems)
    total = probability = vw_probability(content, *first[2], problems)
    cost = vw_number(content, *first[1], problems)
    for part in parts[1:]:
        pair = _vw_parts(*part, b":")
        if len(pair) != 2:
            raise FatalError(ProblemCode.SLOT_OUTCOME, part[1])
        _vw_action(*pair[0], problems)
        total += vw_probability(content, *pair[1], problems)
    if len(parts) > 1 and not abs(total - np.float32(1)) < np.float32(1e-4):
        raise FatalError(ProblemCode.SLOT_SUM, column)
    return action, float(cost), float(probability)
