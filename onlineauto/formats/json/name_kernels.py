"""Names that mean something in JSON: compared eight bytes at a time, with constants of the machine code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import inline_kernel
from onlineauto.jit.words import load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Name", "is_name", "name_of"]

_WORD = 8
_LOWER = 0x20  # what a small letter has that its capital has not


class _Word(NamedTuple):
    """Eight bytes of a name, or as many as it has."""

    at: int  # where in the name they begin
    fold: np.uint64  # set before they are compared
    mask: np.uint64  # of those that count
    bytes: np.uint64


class Name(NamedTuple):
    """A name of up to 24 bytes; its words may overlap."""

    size: int
    first: _Word
    middle: _Word
    last: _Word


def name_of(head: bytes, any_case: bytes = b"") -> Name:
    """Make the name of `head` and then `any_case`, small letters that may be capital ones."""
    text = head + any_case
    size = len(text)
    if not 0 < size <= 3 * _WORD:
        raise ValueError(f"a name of 1 to {3 * _WORD} bytes is wanted, not {text!r}")
    fold = bytes(len(head)) + bytes([_LOWER]) * len(any_case)
    last = max(size - _WORD, 0)
    return Name(size, *(_word_at(text, fold, at) for at in (0, min(_WORD, last), last)))


def _word_at(text: bytes, fold: bytes, at: int) -> _Word:
    mask = bytes([0xFF]) * min(_WORD, len(text))
    parts = fold[at : at + _WORD], mask, text[at : at + _WORD]
    return _Word(at, *(np.uint64(int.from_bytes(part, "little")) for part in parts))


@inline_kernel
def _is_word(data: NDArray[np.uint8], start: int, word: _Word) -> bool:
    return bool((load8(data, start + word.at) | word.fold) & word.mask == word.bytes)


@inline_kernel
def is_name(data: NDArray[np.uint8], start: int, end: int, name: Name) -> bool:
    """Whether ``data[start:end]`` is `name`; there have to be eight bytes from `start` on."""
    if end - start != name.size:
        return False
    if not _is_word(data, start, name.first):
        return False
    return name.size <= _WORD or (_is_word(data, start, name.middle) and _is_word(data, start, name.last))
