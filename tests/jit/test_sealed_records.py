"""Records of several kinds, which a kernel passes on by their addresses to kernels that know the kinds."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from onlineauto.jit import Sealed, SealedRecords, call_at, entry_kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Sum(NamedTuple):
    total: NDArray[np.float64]


class Count(NamedTuple):
    step: int
    seen: NDArray[np.int64]
    again: Sum


@entry_kernel
def add(state: Sum, value: float) -> None:
    state.total[0] += value


@entry_kernel
def count(state: Count, value: float) -> None:
    state.seen[0] += state.step
    state.again.total[0] -= value


@entry_kernel
def observe(kernels: NDArray[np.int64], states: NDArray[np.int64], value: float) -> None:
    for i in range(len(states)):
        call_at(kernels[i], (states[i], value))


def make() -> SealedRecords:
    return SealedRecords([Sum(np.zeros(1)), Count(3, np.zeros(1, np.int64), Sum(np.zeros(1)))])


def kernels_of(records: SealedRecords) -> NDArray[np.int64]:
    kinds = zip((add, count), records.records, strict=True)
    return np.array([kernel.address(Sealed(record), 0.0) for kernel, record in kinds])  # type: ignore[attr-defined]


def values(records: SealedRecords) -> tuple[float, int, float]:
    sums, counts = records.records
    return float(sums.total[0]), int(counts.seen[0]), float(counts.again.total[0])


def test_a_kernel_passes_records_on_without_knowing_their_kinds() -> None:
    records = make()
    for value in (1.5, 2.0):
        observe(kernels_of(records), records.array, value)
    assert values(records) == (3.5, 6, -3.5)


def test_a_copy_has_records_of_its_own() -> None:
    records = make()
    observe(kernels_of(records), records.array, 1.0)
    copies = copy.deepcopy(records), pickle.loads(pickle.dumps(records))  # noqa: S301
    for other in copies:
        assert set(other.addresses.tolist()).isdisjoint(records.addresses.tolist())
        observe(kernels_of(other), other.array, 2.0)
        assert values(other) == (3.0, 6, -3.0)
    assert values(records) == (1.0, 3, -1.0)


def test_there_may_be_none() -> None:
    nothing = SealedRecords([])
    observe(np.zeros(0, np.int64), nothing.array, 1.0)
    assert len(nothing.addresses) == 0
