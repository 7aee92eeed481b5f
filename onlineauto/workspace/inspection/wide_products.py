"""``WideProduct``: the products of an interaction with too many products to list, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_FNV = np.uint64(16777619)


@dataclass(frozen=True, slots=True)
class Factor:
    """The features of a factor: their names, hashes and values."""

    names: Sequence[str | None]
    hash: NDArray[np.uint64]
    value: NDArray[np.float32]
    again: bool
    """True if the factor repeats the one before it, so that each combination is taken once."""


@dataclass(frozen=True, slots=True)
class WideProduct:
    """The products of an interaction."""

    cell: NDArray[np.int64]  # int64[n]: their cells in the table of weights.
    value: NDArray[np.float32]  # float32[n]: their values.
    run: int  # 1 + the number of the interaction.
    factors: Sequence[Factor]
    chosen: Sequence[NDArray[np.int32]]  # int32[n]: the index of each factor's feature in each product.

    def name_of(self, i: int) -> str:
        """Return the names crossed in a product; unknown names are omitted."""
        names = (factor.names[chosen[i]] for factor, chosen in zip(self.factors, self.chosen, strict=True))
        return "*".join(name for name in names if name is not None)


def wide_product(factors: Sequence[Factor], mask: int, run: int) -> WideProduct:
    """Return the products of two or more factors, in the order of `NamedExamples`.

    >>> one = Factor(["a", "b"], np.array([1, 2], np.uint64), np.array([1, 2], np.float32), False)
    >>> made = wide_product([one, Factor(one.names, one.hash, one.value, True)], 1023, 1)
    >>> [made.name_of(i) for i in range(3)], made.value.tolist()
    (['a*a', 'a*b', 'b*b'], [1.0, 2.0, 4.0])
    """
    first, *others = factors
    state, value, chosen = first.hash * _FNV, first.value, [np.arange(len(first.hash), dtype=np.int32)]
    for number, factor in enumerate(others, 1):
        left, right = np.divmod(
            np.arange(len(state) * len(factor.hash), dtype=np.int32), np.int32(len(factor.hash))
        )
        if factor.again:
            once = right >= chosen[-1][left]
            left, right = left[once], right[once]
        state = state[left] ^ factor.hash[right]
        if number < len(others):
            state = state * _FNV
        value = value[left] * factor.value[right]
        chosen = [*(each[left] for each in chosen), right]
    return WideProduct((state & np.uint64(mask)).astype(np.int64), value, run, factors, chosen)
