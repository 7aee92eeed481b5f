"""``Grams``: the n-grams of ``--ngram`` and ``--skips``."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from onlineauto.errors import OptionError
from onlineauto.features.gram_kernels import BlockRecords, GramRules, write_grams
from onlineauto.features.options import FeatureOptions, letters_of
from onlineauto.features.records import FEATURE, SPAN, largest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.options import Configuration

_MOST: Final = 1000
"""Maximum number of kinds of n-grams of a namespace, each of which is one more feature for a word."""
GRAMS: Final = ("ngram", "skips")
"""Names of the options."""
_WORD: Final = re.compile(r"(.*?)(\d+)", re.DOTALL)


class Grams:
    """The n-grams that the options add to blocks.

    >>> from onlineauto.features.options import FeatureOptions
    >>> grams = Grams(FeatureOptions(ngram=("2", "a3")), bytewise=False)
    >>> grams.offsets_of(b"user"), grams.offsets_of(b"age")
    ([(0, 1)], [(0, 1), (0, 1, 2)])
    """

    def __init__(self, options: FeatureOptions, *, bytewise: bool) -> None:
        self._sizes = [_parsed(text, "--ngram", bytewise=bytewise) for text in options.ngram]
        self._skips = [_parsed(text, "--skips", bytewise=bytewise) for text in options.skips]
        self._bytewise = bytewise
        self._known: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def __bool__(self) -> bool:
        """Return whether there are any n-grams."""
        return bool(self._sizes)

    def offsets_of(self, name: bytes) -> list[tuple[int, ...]]:
        """Return the kinds of n-grams of a namespace in VW's order: the positions of the words."""
        size, skips = (
            next((number for letter, number in reversed(each) if name.startswith(letter)), 0)
            for each in (self._sizes, self._skips)
        )
        if (size, skips) not in self._known:
            self._known[size, skips] = offsets(size, skips)
        return self._known[size, skips]

    def expand(self, block: Block, key: NDArray[np.int32]) -> Block:
        """Return a block with its n-grams; `key` has the group key of each namespace."""
        kinds = [self.offsets_of(name) for name in block.namespaces.names]
        end = np.cumsum([0, *map(len, kinds)])
        rows = [row for kind in kinds for row in kind]
        table = np.zeros((len(rows), 1 + max(map(len, rows), default=0)), np.int64)
        for i, row in enumerate(rows):
            table[i, : 1 + len(row)] = len(row), *row
        n, most = block.n_features, 1 + max(map(len, kinds), default=0)
        rules = GramRules(
            key=key,
            first=end[:-1],
            end=end[1:],
            offsets=table,
            words=np.empty(largest(block.span_start[block.line_start]), np.uint32),
            vectors=self._bytewise,
        )
        source = BlockRecords(block.lines, block.spans, block.features)
        spans, features = np.empty(2 * len(block.spans), SPAN), np.empty(n * most, FEATURE)
        target = BlockRecords(block.lines.copy(), spans, features)
        n_spans, n_features = write_grams(source, target, rules)
        return replace(block, lines=target.lines, spans=spans[: n_spans + 1], features=features[:n_features])


def offsets(size: int, skips: int) -> list[tuple[int, ...]]:
    """Return all n-grams of up to `size` words with up to `skips` words left out, in VW's order.

    >>> offsets(3, 1)
    [(0, 1), (0, 2), (0, 1, 2), (0, 1, 3), (0, 2, 3)]
    """
    found: list[tuple[int, ...]] = []

    def add(left: int, skips_left: int, words: tuple[int, ...], skipped: int) -> None:
        if left == 0:
            found.append(words)
            return
        add(left - 1, skips_left, (*words, words[-1] + 1 + skipped), 0)
        if skips_left:
            add(left, skips_left - 1, words, skipped + 1)

    for words in range(1, size):
        add(words, skips, (0,), 0)
        if len(found) > _MOST:
            raise OptionError(
                f"--ngram {size} with --skips {skips} gives more than {_MOST} features per word"
            )
    return found


def check_grams(configuration: Configuration) -> None:
    """Reject malformed or too many n-grams."""
    options, bytewise = configuration[FeatureOptions], bool(configuration.first_result("bytewise_letters"))
    if options.skips and not options.ngram:
        raise OptionError("--skips leaves out words of n-grams: give --ngram, too")
    grams = Grams(options, bytewise=bytewise)
    for text in options.ngram:
        grams.offsets_of(_parsed(text, "--ngram", bytewise=bytewise)[0])


def _parsed(text: str, flag: str, *, bytewise: bool) -> tuple[bytes, int]:
    """Return the letter of a namespace, or b"" for all, and the number of words."""
    match = _WORD.fullmatch(text)
    letters: Sequence[bytes] = letters_of(match[1], bytewise=bytewise) if match else ()
    if match is None or len(letters) > 1 or int(match[2]) > 99:
        raise OptionError(
            f"{flag} {text!r} is not a number up to 99, such as 2, or a2 for namespaces that begin with a"
        )
    return (letters[0] if letters else b""), int(match[2])
