"""Numbers of labels in text, the slow and obvious way, in both modes."""

from __future__ import annotations

import re

import numpy as np

from onlineauto.features.block import UNLABELLED
from onlineauto.formats.records.problem_code_kernels import ProblemCode
from tests.naive.floats import parse_decimal, parse_vw_float
from tests.naive.lines import BadLineError


def number_of(word: bytes) -> tuple[np.float32, str]:
    """Value of a word, 0 unless it is a finite decimal number, and its kind."""
    value, length = parse_decimal(word)
    if word and length == len(word):
        return (value, "decimal") if np.isfinite(value) else (np.float32(0), "not finite")
    if length:
        return np.float32(0), "partly"
    if re.fullmatch(rb"[+-]?(inf|infinity|nan(\([0-9a-z_]*\))?)", word, re.IGNORECASE):
        return np.float32(0), "not finite"
    return np.float32(0), "word"


def label_number(word: bytes, column: int, kind: str) -> np.float32:
    value, found = number_of(word)
    if found == "not finite" or abs(value) == UNLABELLED:
        raise BadLineError(ProblemCode[f"{kind}_NOT_FINITE"], column)
    if found != "decimal":
        raise BadLineError(ProblemCode[f"{kind}_NOT_A_NUMBER"], column)
    return value


def probability_problem(probability: np.float32) -> ProblemCode | None:
    """What is wrong with a logged probability."""
    if probability < 0:
        return ProblemCode.PROBABILITY_NEGATIVE
    if probability < np.float32(1e-38):  # its inverse is infinite
        return ProblemCode.PROBABILITY_ZERO
    return ProblemCode.PROBABILITY_ABOVE_ONE if probability > 1 else None


def vw_number(
    content: bytes, word: bytes, column: int, problems: list[tuple[ProblemCode, int]]
) -> np.float32:
    runs_on = word[0] in b"\v\f\r"
    value, length = parse_vw_float(content[column:] if runs_on else word)
    if length == 0 or np.isnan(value):
        problems.append((ProblemCode.VW_FLOAT, column))
        return np.float32(0)
    return value


def vw_probability(
    content: bytes, word: bytes, column: int, problems: list[tuple[ProblemCode, int]]
) -> np.float32:
    """A probability, brought between 0 and 1."""
    probability = vw_number(content, word, column, problems)
    if probability > 1:
        problems.append((ProblemCode.VW_PROBABILITY_ABOVE_ONE, column))
    elif probability < 0:
        problems.append((ProblemCode.VW_PROBABILITY_NEGATIVE, column))
    return min(max(probability, np.float32(0)), np.float32(1))
