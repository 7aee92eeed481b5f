"""The header: the numbers of a model that do not belong to cells, and the account of learned events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from onlineauto.learners.gradient_kernels import FACTOR, MAX_LABEL, MIN_LABEL, NORM, WEIGHT

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from onlineauto.learners.gradient_kernels import Model

EVENTS, WEIGHTS, LOSS, SKIPPED = range(4)
"""Entries of an account: events, sum of their weights, sum of their losses, malformed lines."""


class Header(NamedTuple):
    """The numbers of a model that do not belong to cells, and the account. The arrays are read-only."""

    shared: NDArray[np.float64]  # as in `Model`
    lanes: NDArray[np.float64]
    sums: NDArray[np.int64]
    account: NDArray[np.float64]  # [4]

    @classmethod
    def of(cls, model: Model, account: NDArray[np.float64]) -> Header:
        """Return the header of a model, as a copy."""
        return cls(model.shared.copy(), model.lanes.copy(), model.sums.copy(), account.copy())

    def write_to(self, model: Model) -> None:
        """Copy the numbers into a model."""
        model.shared[:], model.lanes[:], model.sums[:] = self.shared, self.lanes, self.sums


def combine_headers(before: Header, parts: Sequence[Header]) -> Header:
    """Return the header after a tick from the header before it and those of its parts.

    Changes of counts and sums are added in the order of the parts; ranges of labels are united. If only one
    part has events, its header is the result, because a sum would add rounding errors. Of parts without
    events, only the skipped lines count.
    """
    skipped = sum(part.account[SKIPPED] - before.account[SKIPPED] for part in parts)
    learnt = [part for part in parts if part.account[EVENTS] > before.account[EVENTS]]
    header = _sum_headers(before, learnt)
    account = header.account.copy()
    account[SKIPPED] = before.account[SKIPPED] + skipped
    return header._replace(account=account)


def _sum_headers(before: Header, parts: Sequence[Header]) -> Header:
    if not parts:
        return before
    if len(parts) == 1:
        return parts[0]
    shared, lanes = before.shared.copy(), before.lanes.copy()
    sums, account = before.sums.copy(), before.account.copy()
    for part in parts:
        shared[:MIN_LABEL] += part.shared[:MIN_LABEL] - before.shared[:MIN_LABEL]
        lanes[:, [NORM, WEIGHT]] += (part.lanes - before.lanes)[:, [NORM, WEIGHT]]
        sums += part.sums - before.sums
        account += part.account - before.account
    shared[MIN_LABEL] = min(part.shared[MIN_LABEL] for part in parts)
    shared[MAX_LABEL] = max(part.shared[MAX_LABEL] for part in parts)
    shared[FACTOR] = parts[-1].shared[FACTOR]
    return Header(shared, lanes, sums, account)


class HeaderShard:
    """The block that has the header."""

    def __init__(self, header: Header) -> None:
        self.header = self._before = header

    def read(self, keys: None) -> Header:  # noqa: ARG002 - the whole header is read
        """Return the header."""
        return self.header

    def read_before(self, keys: None) -> Header:  # noqa: ARG002
        """Return the header before the last tick."""
        return self._before

    def apply(self, updates: Sequence[Sequence[Header]]) -> None:
        """Combine the headers of the parts of a tick, in the order of workers."""
        self._before = self.header
        self.header = combine_headers(self.header, [part for parts in updates for part in parts])

    def dump(self) -> Header:
        """Return the header."""
        return self.header
