"""``Grams``: the n-grams of ``--ngram`` and ``--skips``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.gram_kernels import BlockRecords, GramRules, write_grams
from onlineauto.features.options import gram_offsets, gram_sizes, number_for
from onlineauto.features.records import FEATURE, SPAN, largest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.options import FeatureOptions


class Grams:
    """The n-grams that the options add to blocks.

    >>> from onlineauto.features.options import FeatureOptions
    >>> grams = Grams(FeatureOptions(ngram=("2", "a3")), bytewise=False)
    >>> grams.offsets_of(b"user"), grams.offsets_of(b"age")
    ([(0, 1)], [(0, 1), (0, 1, 2)])
    """

    def __init__(self, options: FeatureOptions, *, bytewise: bool) -> None:
        self._sizes, self._skips = gram_sizes(options, bytewise=bytewise)
        self._bytewise = bytewise
        self._known: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def __bool__(self) -> bool:
        """Return whether there are any n-grams."""
        return bool(self._sizes)

    def offsets_of(self, name: bytes) -> list[tuple[int, ...]]:
        """Return the kinds of n-grams of a namespace in VW's order: the positions of the words."""
        size, skips = number_for(name, self._sizes), number_for(name, self._skips)
        if (size, skips) not in self._known:
            self._known[size, skips] = gram_offsets(size, skips)
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
