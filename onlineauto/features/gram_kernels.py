"""Add n-grams to the lines of a block: features of value 1 for words that are close to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.features.vector_kernels import is_vector
from onlineauto.jit import entry_kernel, kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records

_ONE = np.float32(1)
_QUADRATIC = np.uint32(27942141)
"""VW's constant that joins the hashes of two words."""


class GramRules(NamedTuple):
    """The n-grams of each namespace."""

    key: NDArray[np.int32]  # group key of each namespace; the namespaces of a key are one sequence of words
    first: NDArray[np.int64]  # of each namespace: its n-grams are the rows first <= row < end of `offsets`
    end: NDArray[np.int64]
    # int64[n, 1 + k]: number of words of an n-gram, and the position of each word after the first one.
    offsets: NDArray[np.int64]
    words: NDArray[np.uint32]  # free space for the hashes of a line
    vectors: bool  # whether vectors have n-grams, too


class BlockRecords(NamedTuple):
    """The records of a block that n-grams change."""

    lines: Records
    spans: Records
    features: Records


@kernel
def _collect_words(source: BlockRecords, first: int, end: int, key: int, rules: GramRules) -> int:
    """Collect the hashes of the features of a key in ``first <= span < end``; return their number."""
    n = 0
    for span in range(first, end):
        begin, stop = source.spans[span].start, source.spans[span + 1].start
        if rules.key[source.spans[span].namespace] == key and (
            rules.vectors or not is_vector(source.features, begin, stop)
        ):
            for i in range(begin, stop):
                rules.words[n] = source.features[i].hash
                n += 1
    return n


@kernel
def _write_kind(words: NDArray[np.uint32], n: int, offset: NDArray[np.int64], to: Records, at: int) -> int:
    """Write one kind of n-grams of `n` words from index `at` on; return the index after them."""
    size = offset[0]
    for i in range(n - offset[size]):
        hash_ = words[i]
        for word in range(2, size + 1):
            hash_ = np.uint32(np.uint32(hash_ * _QUADRATIC) + words[i + offset[word]])
        to[at].hash = hash_
        to[at].value = _ONE
        at += 1
    return at


@entry_kernel
def write_grams(source: BlockRecords, target: BlockRecords, rules: GramRules) -> tuple[int, int]:
    """Write the lines of a block with their n-grams; return the numbers of spans and features.

    The n-grams of a line's namespace are a span after the line's other spans.

    Source: VW 9.11.9, ``kskip_ngram_transformer.cc``.
    """
    n_spans = n_features = 0
    for line in range(len(source.lines) - 1):
        first, end = source.lines[line].start, source.lines[line + 1].start
        target.lines[line].start = n_spans
        for span in range(first, end):
            target.spans[n_spans].start = n_features
            target.spans[n_spans].namespace = source.spans[span].namespace
            n_spans += 1
            for i in range(source.spans[span].start, source.spans[span + 1].start):
                target.features[n_features].hash = source.features[i].hash
                target.features[n_features].value = source.features[i].value
                n_features += 1
        for span in range(first, end):
            namespace = source.spans[span].namespace
            key, is_first = rules.key[namespace], True
            for earlier in range(first, span):
                is_first &= rules.key[source.spans[earlier].namespace] != key
            if not is_first or rules.first[namespace] == rules.end[namespace]:
                continue
            begin, n = n_features, _collect_words(source, span, end, key, rules)
            for row in range(rules.first[namespace], rules.end[namespace]):
                n_features = _write_kind(rules.words, n, rules.offsets[row], target.features, n_features)
            if n_features > begin:
                target.spans[n_spans].start = begin
                target.spans[n_spans].namespace = namespace
                n_spans += 1
    target.lines[len(source.lines) - 1].start = n_spans
    target.spans[n_spans].start = n_features
    target.spans[n_spans].namespace = 0
    return n_spans, n_features
