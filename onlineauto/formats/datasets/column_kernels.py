"""Write the features of whole columns into the records of a block.

A block is made in two rounds over its columns. The first round counts the features that each line gets in
each namespace; `lay_out` turns the counts into spans; the second round writes the features into the spans.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from onlineauto.features.hash_kernels import hash_name
from onlineauto.jit import entry_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.records import Records


@entry_kernel
def hash_texts(
    data: NDArray[np.uint8],
    start: NDArray[np.int64],
    name: NDArray[np.uint8],
    before: int,
    seed: np.uint32,
    hash_all: bool,
    hashes: NDArray[np.uint32],
) -> None:
    """Write the hash of each text, preceded by a prefix.

    Parameters
    ----------
    data : uint8[:]
        Bytes of all texts.
    start : int64[n + 1]
        First byte of each text.
    name : uint8[:]
        The prefix, followed by space for the longest text and eight more bytes.
    before : int
        Number of bytes of the prefix.
    seed : uint32
        Hash of the namespace.
    hash_all : bool
        Whether digits are hashed like other bytes; see `hash_name`.
    hashes : uint32[n]
        Filled.
    """
    for i in range(len(hashes)):
        begin, end = start[i], start[i + 1]
        for at in range(begin, end):
            name[before + at - begin] = data[at]
        hashes[i] = hash_name(name, 0, before + end - begin, seed, hash_all)


@entry_kernel
def count_codes(
    code: NDArray[np.int32], line: NDArray[np.int64], namespace: int, counts: NDArray[np.int64]
) -> None:
    """Add the features of a column of texts to the number of features of each line.

    Parameters
    ----------
    code : int32[n]
        Index of each text's hash; -1 for none.
    line : int64[n]
        Line that each text belongs to; -1 if it is left out.
    namespace : int
        Column of `counts`.
    counts : int64[n_lines, n_namespaces]
    """
    for i in range(len(code)):
        if code[i] >= 0 and line[i] >= 0:
            counts[line[i], namespace] += 1


@entry_kernel
def count_numbers(
    value: NDArray[np.float32], line: NDArray[np.int64], namespace: int, counts: NDArray[np.int64]
) -> None:
    """Add the features of a column of numbers to the counts like `count_codes`; 0 is not a feature."""
    for i in range(len(value)):
        if value[i] != 0 and line[i] >= 0:
            counts[line[i], namespace] += 1


@entry_kernel
def lay_out(counts: NDArray[np.int64], numbers: NDArray[np.int32], lines: Records, spans: Records) -> int:
    """Turn counts into spans; return the number of features.

    Parameters
    ----------
    counts : int64[n_lines, n_namespaces]
        Number of features; replaced by the index of the first feature.
    numbers : int32[n_namespaces]
        Number of each namespace in the block.
    lines : LINE[n_lines + 1]
        Lines, whose `start` is set.
    spans : SPAN[n_spans + 1]
        Filled with a span for each count above 0.
    """
    n_lines, n_namespaces = counts.shape
    span, feature = 0, 0
    for line in range(n_lines):
        lines[line].start = span
        for namespace in range(n_namespaces):
            n = counts[line, namespace]
            counts[line, namespace] = feature
            if n > 0:
                spans[span].start = feature
                spans[span].namespace = numbers[namespace]
                span += 1
                feature += n
    lines[n_lines].start = span
    spans[span].start = feature
    spans[span].namespace = 0
    return feature


@entry_kernel
def write_codes(
    code: NDArray[np.int32],
    hashes: NDArray[np.uint32],
    line: NDArray[np.int64],
    namespace: int,
    at: NDArray[np.int64],
    features: Records,
) -> None:
    """Write the features of a column of texts, all of value 1.

    Parameters
    ----------
    code, line, namespace
        As for `count_codes`.
    hashes : uint32[k]
        Hash of each text.
    at : int64[n_lines, n_namespaces]
        Index of the next feature of each line and namespace; advanced.
    features : FEATURE[:]
    """
    for i in range(len(code)):
        if code[i] >= 0 and line[i] >= 0:
            here = at[line[i], namespace]
            features[here].hash = hashes[code[i]]
            features[here].value = np.float32(1)
            at[line[i], namespace] = here + 1


@entry_kernel
def write_numbers(
    value: NDArray[np.float32],
    hashes: NDArray[np.uint32],
    line: NDArray[np.int64],
    namespace: int,
    at: NDArray[np.int64],
    features: Records,
) -> None:
    """Write the features of a column of numbers; see `write_codes`.

    `hashes` has one hash for the whole column, or one for each number.
    """
    step = 1 if len(hashes) > 1 else 0
    for i in range(len(value)):
        if value[i] != 0 and line[i] >= 0:
            here = at[line[i], namespace]
            features[here].hash = hashes[i * step]
            features[here].value = value[i]
            at[line[i], namespace] = here + 1
