"""Vectors of contexts as inputs: one block of numbers, and a projection to few of them.

The numbers of a long vector, which has more than `FEW`, are no single inputs. They are standardised like
other numbers, divided by the square root of the vector's length, and stored one vector after the other in
`Taken.vectors`, which the member `vectors` reads. A missing number is 0 there, which is its mean. Vectors
with more numbers than the remaining capacity are folded: several numbers, each with a random sign, are added
up at one index. Source: Charikar, Chen and Farach-Colton, *Finding frequent items in data streams*, 2002
(count sketch).

The other members see the projections of the block on its first principal components. These are computed once,
from the first `SUMMED` events, because what a number means must not change afterwards.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.engine.ensemble.least_squares_kernels import dot
from onlineauto.engine.records.ensemble import (
    MEMORY,
    MOST_IN_VECTORS,
    MOST_VECTORS,
    PROJECTED,
    InVectors,
)
from onlineauto.features.hash_constants import GOLDEN
from onlineauto.features.records import LEAST_VECTOR
from onlineauto.features.vector_kernels import is_vector
from onlineauto.jit import inline_kernel, kernel, short_loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import InputVectors, Taken
    from onlineauto.features.records import Stream


FEW = 48
"""Maximum number of numbers of a vector that are inputs like all others."""

_FIRST, SUMMED = 32, 256
"""Events whose numbers are only standardised; events after these that determine the projection."""

PROJECTION = 1 << 57
"""Key of the first projection among the inputs; see `Inputs.feature`."""

_ROUNDS = 16
_FAR, _LARGEST = 4.0, np.float32(np.finfo(np.float32).max)
_NAN = np.float32(math.nan)
_ZERO, _ONE = np.float32(0), np.float32(1)
_GOLDEN, _TOP = np.uint64(GOLDEN), np.uint64(63)


@inline_kernel
def is_block(stream: Stream, span: int) -> bool:
    """Return whether the features of a namespace in a line are a long vector."""
    begin, end = stream.spans[span].start, stream.spans[span + 1].start
    return bool(end - begin > FEW and is_vector(stream.features, begin, end))


@inline_kernel
def _vector_of(vectors: InputVectors, head: np.uint64) -> int:
    """Return the index of the known vector whose first number has a hash, -1 if there is none."""
    found = -1
    for v in range(vectors.vectors[InVectors.VECTORS]):
        short_loop()
        if vectors.heads[v] == head:
            found = v
    return found


@inline_kernel
def register_vectors(vectors: InputVectors, stream: Stream, line: int) -> None:
    """Register the vectors of a line as far as the capacity allows."""
    counts, starts = vectors.vectors, vectors.starts
    for span in range(stream.lines[line].start, stream.lines[line + 1].start):
        short_loop()
        if not is_block(stream, span):
            continue
        begin, n, at = stream.spans[span].start, counts[InVectors.NUMBERS], counts[InVectors.VECTORS]
        head, room = np.uint64(stream.features[begin].hash), MOST_IN_VECTORS - n
        if at < MOST_VECTORS and room >= LEAST_VECTOR and _vector_of(vectors, head) < 0:
            vectors.heads[at] = head
            starts[at + 1] = n + min(stream.spans[span + 1].start - begin, room)
            counts[InVectors.VECTORS], counts[InVectors.NUMBERS] = at + 1, starts[at + 1]


@kernel
def _copy_vector(stream: Stream, span: int, values: NDArray[np.float32]) -> None:
    """Write the numbers of a vector; those beyond the capacity are added, each with a random sign."""
    begin, end, size = stream.spans[span].start, stream.spans[span + 1].start, len(values)
    for i in range(min(end - begin, size)):
        values[i] = stream.features[begin + i].value
    for i in range(size, end - begin):
        value = stream.features[begin + i].value
        values[i % size] += value if (np.uint64(i) * _GOLDEN) >> _TOP == 0 else -value


@kernel
def _standardise(
    mean: NDArray[np.float64],
    variance: NDArray[np.float64],
    values: NDArray[np.float32],
    numbers: NDArray[np.float32],
) -> None:
    """Write the distances of a vector's numbers from their means in standard deviations, clipped and scaled.

    A number that is not finite becomes 0.
    """
    scale = 1.0 / math.sqrt(len(values))
    for i in range(len(values)):
        spread = math.sqrt(variance[i]) if variance[i] > 0.0 else math.inf
        distance = min(max((np.float64(values[i]) - mean[i]) / spread, -_FAR), _FAR)
        numbers[i] = np.float32(scale * distance) if abs(values[i]) <= _LARGEST else _ZERO


@inline_kernel
def take_vectors(vectors: InputVectors, stream: Stream, line: int, taken: Taken) -> None:
    """Fill the numbers of the vectors of an event, from the line that its actions share; -1 for none."""
    n = vectors.vectors[InVectors.NUMBERS]
    if n == 0:
        return
    numbers, values = taken.vectors[0, 1 : 1 + n], taken.vectors[1, 1 : 1 + n]
    values[:] = _NAN
    if line >= 0:
        for span in range(stream.lines[line].start, stream.lines[line + 1].start):
            short_loop()
            if is_block(stream, span):
                at = _vector_of(vectors, np.uint64(stream.features[stream.spans[span].start].hash))
                if at >= 0:
                    _copy_vector(stream, span, values[vectors.starts[at] : vectors.starts[at + 1]])
    taken.vectors[0, 0] = _ONE
    for v in range(vectors.vectors[InVectors.VECTORS]):
        short_loop()
        begin, end = vectors.starts[v], vectors.starts[v + 1]
        mean, variance = vectors.vector_mean[begin:end], vectors.vector_variance[begin:end]
        _standardise(mean, variance, values[begin:end], numbers[begin:end])


@inline_kernel
def projection_of(vectors: InputVectors, taken: Taken, direction: int) -> float:
    """Return the projection of an event's vectors on a direction."""
    n = vectors.vectors[InVectors.NUMBERS]
    return dot(vectors.basis[direction], taken.vectors[0, 1:], n)


@inline_kernel
def _has_numbers(values: NDArray[np.float32]) -> bool:
    """Return whether any of the values is finite, as in each vector that is not missing."""
    at = 0
    while at < len(values) and not abs(values[at]) <= _LARGEST:
        at += 1
    return at < len(values)


@kernel
def _see_values(
    mean: NDArray[np.float64], variance: NDArray[np.float64], values: NDArray[np.float32], part: float
) -> None:
    """Move means and variances by a `part` of the distance to new values; skip those that are not finite."""
    for i in range(len(values)):
        value = np.float64(values[i]) if abs(values[i]) <= _LARGEST else mean[i]
        difference = value - mean[i]
        mean[i] += part * difference
        variance[i] += part * (difference * (value - mean[i]) - variance[i])


@kernel
def _add_products(products: NDArray[np.float32], numbers: NDArray[np.float32], n: int) -> None:
    """Add the products of the numbers of an event to the sums."""
    for i in range(n):
        row, factor = products[i], numbers[i]
        for j in range(n):
            row[j] += factor * numbers[j]


@inline_kernel
def see_vectors(vectors: InputVectors, taken: Taken) -> bool:
    """Update means, variances and sums of products with an event; return whether the projection is due."""
    counts, starts, seen = vectors.vectors, vectors.starts, 0
    for v in range(counts[InVectors.VECTORS]):
        short_loop()
        values = taken.vectors[1, 1 + starts[v] : 1 + starts[v + 1]]
        if _has_numbers(values):
            vectors.vector_seen[v] += 1
            seen = max(seen, vectors.vector_seen[v])
            part = 1.0 / min(np.float64(vectors.vector_seen[v]), MEMORY)
            _see_values(
                vectors.vector_mean[starts[v] : starts[v + 1]],
                vectors.vector_variance[starts[v] : starts[v + 1]],
                values,
                part,
            )
    if counts[InVectors.PROJECTED] > 0 or seen <= _FIRST:
        return False
    _add_products(vectors.products, taken.vectors[0, 1:], counts[InVectors.NUMBERS])
    counts[InVectors.SUMMED] += 1
    return bool(counts[InVectors.SUMMED] >= SUMMED)


@kernel
def make_basis(vectors: InputVectors) -> None:
    """Compute the directions of the largest variance, by orthogonal iteration.

    Source: Golub and Van Loan, *Matrix computations*, section 8.2.4.
    """
    n, basis, products = vectors.vectors[InVectors.NUMBERS], vectors.basis, vectors.products
    after = vectors.directions
    for k in range(PROJECTED):
        for i in range(n):
            mixed = (np.uint64(1 + k * MOST_IN_VECTORS + i) * _GOLDEN) >> np.uint64(32)
            basis[k, i] = np.float32(np.float64(mixed) / 2.0**32 - 0.5)
    for _ in range(_ROUNDS):
        after[:, :n] = _ZERO
        for k in range(PROJECTED):
            row = after[k]
            for i in range(n):
                source, factor = products[i], basis[k, i]
                for j in range(n):
                    row[j] += factor * source[j]
        _orthonormalise(after, basis, n)
    vectors.vectors[InVectors.PROJECTED] = PROJECTED


@kernel
def variance_of(vectors: InputVectors, direction: int) -> float:
    """Return the variance of the projections of the summed events on a direction."""
    n, row, total = vectors.vectors[InVectors.NUMBERS], vectors.basis[direction], 0.0
    for i in range(n):
        total += row[i] * dot(vectors.products[i], row, n)
    return max(float(total / vectors.vectors[InVectors.SUMMED]), 0.0)


@kernel
def _orthonormalise(rows: NDArray[np.float32], result: NDArray[np.float32], n: int) -> None:
    """Write orthonormal rows that span the same subspaces as the first rows, in their order."""
    for k in range(len(rows)):
        for _ in range(2):  # a second pass removes what rounding has left
            for other in range(k):
                part = np.float32(dot(rows[k], result[other], n))
                for i in range(n):
                    rows[k, i] -= part * result[other, i]
        size = np.float32(math.sqrt(dot(rows[k], rows[k], n)))
        for i in range(n):
            result[k, i] = rows[k, i] / size if size > 0 else _ZERO
