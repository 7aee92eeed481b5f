r"""Write blocks as VW text that is read back as the same blocks.

A block has only the hashes of its features' names. A name of digits is hashed to its number plus the hash of
the namespace. So each name is replaced by the number with the same hash: ``|user tom`` becomes ``|user
1003740317``. A learner gets the same features. This does not work with ``--hash all``, which hashes digits
like any other name.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import DEFAULT, UNLABELLED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block

NO_WEIGHT = "text has for numeric labels only (a log has one from 1 on: onlineauto.interop.write_dsjson)"
"""Reason for messages: the weight of a bandit's event cannot be written to text."""

_NO_TEXT = bytes(range(32)) + b"\x7f :|"
"""Bytes that a name in VW text cannot contain."""


def block_text(block: Block, *, multiline: bool, slots: bool = False) -> bytes:
    r"""Return the events of a block as VW text for native mode, without line numbers.

    Examples
    --------
    >>> from onlineauto.formats.records.reader_state_kernels import ReaderRules
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
    n_lines = int(block.event_start[-1])
    label = _slot_words if slots else _label_words
    lines = [
        b" ".join([*label(block, line), *_tag_words(block, line), spans])
        for line, spans in zip(range(n_lines), _spans_of_lines(block), strict=True)
    ]
    if not multiline:
        return b"".join(line + b"\n" for line in lines)
    return b"".join(b"\n".join(lines[i:j]) + b"\n\n" for i, j in pairwise(block.event_start.tolist()))


def number_text(value: np.float32) -> str:
    """Return the shortest text of a float32 that is read back as the same number.

    >>> number_text(np.float32(0.1)), number_text(np.float32(3))
    ('0.1', '3.0')
    """
    return str(value)


def _check_finite(block: Block) -> None:
    """Raise an error if a number of the block is infinite or NaN."""
    probability = block.probability[block.probability > -np.inf]  # -inf marks an allowed action of a slot
    columns = (block.label, block.weight, block.initial, block.cost, probability, block.value)
    if not all(np.isfinite(column).all() for column in columns):
        raise InputError(
            "a label, weight or value is infinite or NaN, which only --vw_exact can read; text for native "
            "mode cannot represent it"
        )


def _label_words(block: Block, line: int) -> list[bytes]:
    """Return the words of the label of a line."""
    if block.shared[line]:
        return [b"shared"]
    costs = range(block.cost_start[line], block.cost_start[line + 1])
    if costs:
        return [_cost_word(block, i) for i in costs]
    label = block.label[line]
    if label == UNLABELLED:
        return []
    return [number_text(each).encode() for each in (label, block.weight[line], block.initial[line])]


def _slot_words(block: Block, line: int) -> list[bytes]:
    """Return the words of the label of a line of a CCB event."""
    if not block.slot[line]:
        return [b"ccb", b"shared" if block.shared[line] else b"action"]
    words, confined = [b"ccb", b"slot"], []
    for i in range(block.cost_start[line], block.cost_start[line + 1]):
        if block.probability[i] == -np.inf:
            confined.append(str(block.cost_action[i]).encode())
        elif block.cost[i] == UNLABELLED:
            raise InputError("a slot has a logged action without a cost, which text for native mode requires")
        else:
            words.append(_cost_word(block, i))
    return [*words, b",".join(confined)] if confined else words


def _cost_word(block: Block, i: int) -> bytes:
    """Return a cost as ``action:cost:probability``, without the parts that are missing."""
    words = [str(block.cost_action[i])]
    if block.cost[i] != UNLABELLED:
        words.append(number_text(block.cost[i]))
        if block.probability[i] != 0:  # 0 is a missing probability, taken as uniform
            words.append(number_text(block.probability[i]))
    return ":".join(words).encode()


def _tag_words(block: Block, line: int) -> list[bytes]:
    """Return the tag of a line as a word, or no word."""
    tag = block.tag[block.tag_start[line] : block.tag_start[line + 1]].tobytes()
    if not tag:
        return []
    _refuse_control_bytes(tag.replace(b":", b""), "tag")
    return [b"'" + tag]


def _spans_of_lines(block: Block) -> list[bytes]:
    """Return the text of each line from its first bar on."""
    namespaces = block.namespaces
    for name in namespaces.names:
        if name != DEFAULT:
            _refuse_control_bytes(name, "namespace")
    heads = [b"|" if name == DEFAULT else b"|" + name for name in namespaces.names]
    words = _feature_words(block, np.array([*namespaces.hashes, 0], np.uint32))
    starts = block.span_start.tolist()
    spans = [
        b" ".join([heads[namespace], *words[starts[i] : starts[i + 1]]])
        for i, namespace in enumerate(block.span_namespace.tolist())
    ]
    of_lines = block.line_start[: block.event_start[-1] + 1].tolist()
    return [b" ".join(spans[i:j]) or b"|" for i, j in pairwise(of_lines)]


def _feature_words(block: Block, hashes: NDArray[np.uint32]) -> list[bytes]:
    """Return each feature as a word: the number that replaces the name, and the value."""
    seeds = np.repeat(hashes[block.span_namespace], np.diff(block.span_start))
    names = (block.hash[: len(seeds)] - seeds).tolist()
    values = block.value.astype("U32").tolist()
    return [
        (f"{name}" if value == "1.0" else f"{name}:{value}").encode()
        for name, value in zip(names, values, strict=False)
    ]


def _refuse_control_bytes(name: bytes, noun: str) -> None:
    """Raise an error if a name has a byte that VW text cannot contain."""
    if name.translate(None, _NO_TEXT) != name:
        raise InputError(
            f"{noun} {name!r} has a blank, a colon, a bar or a control byte, which text cannot have there"
        )
