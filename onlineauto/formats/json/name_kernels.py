"""Compare special JSON names eight bytes at a time with constants that are compiled into the kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import inline_kernel
from onlineauto.jit.words import load8

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORD = 8
_LOWER = 0x20  # the bit that turns a capital letter into a small one


class _Word(NamedTuple):
    """Up to eight bytes of a name."""

    at: int  # offset within the name
    fold: np.uint64  # bits that are set before comparing, to ignore case
    mask: np.uint64  # bits that are compared
    bytes: np.uint64


class Name(NamedTuple):
    """A name of up to 24 bytes, as words that may overlap."""

    size: int
    first: _Word
    middle: _Word
    last: _Word


def name_of(head: bytes, any_case: bytes = b"") -> Name:
    """Return the `Name` of `head` followed by `any_case`, small letters that also match their capitals."""
    text = head + any_case
    size = len(text)
    if not 0 < size <= 3 * _WORD:
        raise ValueError(f"a name of 1 to {3 * _WORD} bytes is required, not {text!r}")
    fold = bytes(len(head)) + bytes([_LOWER]) * len(any_case)
    last = max(size - _WORD, 0)
    return Name(size, *(_word_at(text, fold, at) for at in (0, min(_WORD, last), last)))


def _word_at(text: bytes, fold: bytes, at: int) -> _Word:
    """Return the `_Word` of `text` at offset `at`; `fold` has the bits to set in the whole text."""
    mask = bytes([0xFF]) * min(_WORD, len(text))
    parts = fold[at : at + _WORD], mask, text[at : at + _WORD]
    return _Word(at, *(np.uint64(int.from_bytes(part, "little")) for part in parts))


@inline_kernel
def _is_word(data: NDArray[np.uint8], start: int, word: _Word) -> bool:
    return bool((load8(data, start + word.at) | word.fold) & word.mask == word.bytes)


@inline_kernel
def is_name(data: NDArray[np.uint8], start: int, end: int, name: Name) -> bool:
    """Return whether ``data[start:end]`` is `name`.

    At least eight bytes must be readable from `start` on.
    """
    if end - start != name.size:
        return False
    if not _is_word(data, start, name.first):
        return False
    return name.size <= _WORD or (_is_word(data, start, name.middle) and _is_word(data, start, name.last))
