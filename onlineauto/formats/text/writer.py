r"""Write blocks as VW text that is read back as the same blocks.

A block has only the hashes of its features' names. A name of digits is hashed to its number plus the hash of
the namespace. So each name is replaced by the number with the same hash: ``|user tom`` becomes ``|user
1003740317``. A learner gets the same features. This does not work with ``--hash all``, which hashes digits
like any other name.
"""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED
from onlineauto.features.event import labelled_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.event import LabelledLine

NO_WEIGHT = "text has for numeric labels only (a log has one from 1 on: onlineauto.interop.write_dsjson)"
"""Reason for messages: the weight of a bandit's event cannot be written to text."""

_NOT_IN_NAMES = frozenset(map(chr, (*range(33), 127))) | {":", "|"}


def line_text(line: LabelledLine, spans: Sequence[str], *, slots: bool) -> str:
    """Return a line from its label, its tag and the texts of its namespaces, each with its bar."""
    words = _slot_words(line) if slots else _label_words(line)
    if line.tag:
        if not can_be_name(line.tag.replace(":", "")):
            raise InputError(
                f"tag {line.tag!r} has a blank, a bar or a control byte, which text cannot have there"
            )
        words.append(f"'{line.tag}")
    return " ".join([*words, *(spans or "|")])


def namespace_word(name: str) -> str:
    """Return the bar and the name of a namespace."""
    if name in ("", " "):
        return "|"
    if not can_be_name(name):
        raise InputError(
            f"namespace {name!r} has a blank, a colon, a bar or a control byte, which text cannot have there"
        )
    return f"|{name}"


def can_be_name(name: str) -> bool:
    """Return whether text can have a name: it has no blank, colon, bar or control byte."""
    return _NOT_IN_NAMES.isdisjoint(name)


def number_word(value: float, kind: str = "text") -> str:
    """Return the shortest text of a number, as a float32, that a `kind` of file reads as the same number.

    >>> number_word(0.1), number_word(3)
    ('0.1', '3.0')
    """
    if not isfinite(value):
        raise InputError(f"event: {value} is infinite or NaN, which {kind} cannot have")
    return str(np.float32(value))


def _label_words(line: LabelledLine) -> list[str]:
    if line.shared:
        return ["shared"]
    if line.costs:
        return [_cost_word(*cost) for cost in line.costs]
    return [] if line.label is None else list(map(number_word, (line.label, line.weight, line.initial)))


def _slot_words(line: LabelledLine) -> list[str]:
    if not line.slot:
        return ["ccb", "shared" if line.shared else "action"]
    outcomes, allowed = line.outcomes()
    words = ["ccb", "slot", *(_cost_word(*outcome) for outcome in outcomes)]
    return [*words, ",".join(map(str, allowed))] if allowed else words


def _cost_word(action: int, cost: float | None, probability: float) -> str:
    """Return a cost as ``action:cost:probability``, without the parts that are missing."""
    if cost is None:
        return f"{action}"
    # A probability of 0 is missing, and taken as uniform.
    return f"{action}:{number_word(cost)}" + (f":{number_word(probability)}" if probability else "")


def block_text(block: Block, *, multiline: bool, slots: bool = False) -> bytes:
    r"""Return the events of a block as VW text for native mode, without line numbers.

    >>> from onlineauto.formats.lines.reader_state_kernels import ReaderRules
    >>> from onlineauto.formats.text_reader import TextReader
    >>> [block] = TextReader(b"1 2 'first|7 0:0.5 x:0.25\n", ReaderRules())
    >>> print(block_text(block, multiline=False).decode(), end="")
    1.0 2.0 0.0 'first |7 0:0.5 3200005209:0.25
    """
    _check_finite(block)
    heavy = (block.label == UNLABELLED) & (block.weight != 1)
    if heavy.any():
        line = int(heavy.argmax())
        number, weight = block.line_number[line], block.weight[line]
        raise InputError(f"line {number}: its event has the weight {weight}, which {NO_WEIGHT}")
    lines = [
        line_text(line, spans, slots=slots).encode("utf-8", "surrogateescape")
        for line, spans in zip(labelled_lines(block), _spans_of_lines(block), strict=True)
    ]
    if not multiline:
        return b"".join(line + b"\n" for line in lines)
    return b"".join(b"\n".join(lines[i:j]) + b"\n\n" for i, j in pairwise(block.event_start.tolist()))


def _check_finite(block: Block) -> None:
    """Raise an error if a number of the block is infinite or NaN."""
    probability = block.probability[block.probability > -np.inf]  # -inf marks an allowed action of a slot
    columns = (block.label, block.weight, block.initial, block.cost, probability, block.value)
    if not all(np.isfinite(column).all() for column in columns):
        raise InputError(
            "a label, weight or value is infinite or NaN, which only --vw_exact can read; text for native "
            "mode cannot represent it"
        )


def _spans_of_lines(block: Block) -> list[list[str]]:
    """Return the texts of the namespaces of each line."""
    namespaces = block.namespaces
    heads = [namespace_word(name.decode("utf-8", "surrogateescape")) for name in namespaces.names]
    words = _feature_words(block, np.array([*namespaces.hashes, 0], np.uint32))
    starts = block.span_start.tolist()
    spans = [
        " ".join([heads[namespace], *words[starts[i] : starts[i + 1]]])
        for i, namespace in enumerate(block.span_namespace.tolist())
    ]
    return [spans[i:j] for i, j in pairwise(block.line_start[: block.event_start[-1] + 1].tolist())]


def _feature_words(block: Block, hashes: NDArray[np.uint32]) -> list[str]:
    """Return each feature as a word: the number that replaces the name, and the value."""
    seeds = np.repeat(hashes[block.span_namespace], np.diff(block.span_start))
    names = (block.hash[: len(seeds)] - seeds).tolist()
    values = block.value.astype("U32").tolist()
    words = [
        f"{name}" if value == "1.0" else f"{name}:{value}" for name, value in zip(names, values, strict=False)
    ]
    zeros = np.flatnonzero(block.value == 0)
    for span in np.unique(np.searchsorted(block.span_start, zeros, side="right") - 1).tolist():
        start, end = block.span_start[span : span + 2].tolist()  # of a vector, whose features have no names
        words[start:end] = [f":{value}" for value in values[start:end]]
    return words
