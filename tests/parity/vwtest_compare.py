"""How VW's own test runner compares an output with a reference file.

Source: VowpalWabbit/vowpal_wabbit, test/run_tests.py, ``--fuzzy_compare``.
"""

from __future__ import annotations

import math
import re

EPSILON = 1e-4
"""The runner's default tolerance."""

_WORDS = re.compile(r"[ \t:,@=\[\]]+|(?<=\d)-(?=-?\d)")
_MARKS = re.compile(r"[:,@\[\]]+")


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def same_number(ours: float, reference: float, *, epsilon: float = EPSILON) -> bool:
    """Whether two numbers count as equal: absolutely, or relatively if the second is larger than 1."""
    if (math.isinf(ours) and math.isinf(reference)) or (math.isnan(ours) and math.isnan(reference)):
        return True
    if abs(ours - reference) < epsilon:
        return True
    return abs(reference) > 1 and abs(ours / reference - 1) < epsilon


def _same_word(ours: str, reference: str, *, epsilon: float) -> bool:
    mine, theirs = _number(ours), _number(reference)
    if mine is None or theirs is None:
        return ours == reference
    return same_number(mine, theirs, epsilon=epsilon)


def _same_line(ours: str, reference: str, *, epsilon: float) -> bool:
    mine, theirs = (_WORDS.split(line.replace("...", "")) for line in (ours, reference))
    return (
        len(mine) == len(theirs)
        and _MARKS.findall(ours) == _MARKS.findall(reference)
        and all(_same_word(a, b, epsilon=epsilon) for a, b in zip(mine, theirs, strict=True))
    )


def difference(ours: str, reference: str, *, epsilon: float = EPSILON) -> str | None:
    """First difference between two texts by the runner's rule; None if it would let them pass."""
    mine, theirs = ([line.strip() for line in text.strip().splitlines()] for text in (ours, reference))
    for number, (a, b) in enumerate(zip(mine, theirs, strict=False), start=1):
        if not _same_line(a, b, epsilon=epsilon):
            return f"line {number}: reference {b!r}, ours {a!r}"
    if len(mine) != len(theirs):
        longer = theirs if len(theirs) > len(mine) else mine
        first = longer[min(len(mine), len(theirs))]
        return (
            f"reference has {len(theirs)} lines, ours {len(mine)}; the first without a partner is {first!r}"
        )
    return None
