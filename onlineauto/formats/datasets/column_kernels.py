"""Write the features of whole columns into the records of a block, in two rounds over the columns.

The first round counts the features that each line gets in each namespace; `lay_out` turns the counts into
spans; the second round writes the features into the spans.
"""

from __future__ import annotations

import math
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
    """Write the hash of each text, preceded by a prefix, with the hash of the namespace as seed.

    `data` has the bytes of all texts, and `start` the first byte of each: int64[n + 1]. `name` begins with
    the prefix of `before` bytes, followed by space for the longest text and eight more bytes.
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
    """Add the features of a column of texts to the counts: int64[n_lines, n_namespaces].

    `code` has the index of each text's hash, or -1, and `line` the line of each text, or -1.
    """
    for i in range(len(code)):
        if code[i] >= 0 and line[i] >= 0:
            counts[line[i], namespace] += 1


@entry_kernel
def count_numbers(
    value: NDArray[np.float32], line: NDArray[np.int64], namespace: int, counts: NDArray[np.int64]
) -> None:
    """Add the features of a column of numbers to the counts like `count_codes`; NaN is not a feature."""
    for i in range(len(value)):
        if line[i] >= 0 and not math.isnan(value[i]):
            counts[line[i], namespace] += 1


@entry_kernel
def lay_out(counts: NDArray[np.int64], numbers: NDArray[np.int32], lines: Records, spans: Records) -> int:
    """Fill `spans` with a span per count above 0, set the lines' `start`; return the number of features.

    Each count is replaced by the index of its first feature; `numbers` has the namespace's number in the
    block.
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
    """Write the features of a column of texts, all of value 1; see `count_codes`.

    `at` has the index of the next feature of each line and namespace, and is advanced.
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
        if line[i] >= 0 and not math.isnan(value[i]):
            here = at[line[i], namespace]
            features[here].hash = hashes[i * step]
            features[here].value = value[i]
            at[line[i], namespace] = here + 1
