"""``LaggedLabels``: the last labels of a stream of single lines as features of each line, for ``--lags``."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from onlineauto.errors import InputError
from onlineauto.features.block import UNLABELLED, Namespaces
from onlineauto.features.hash_kernels import murmur3
from onlineauto.features.records import FEATURE, SPAN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.features.options import FeatureOptions
    from onlineauto.state.stored import Stored


def lag_names(n: int) -> list[str]:
    """Return the names of the features of `n` lags: the labels, then their differences.

    >>> lag_names(2)
    ['lag 1', 'lag 2', 'change 1']
    """
    return [f"lag {k}" for k in range(1, n + 1)] + [f"change {k}" for k in range(1, n)]


class LaggedLabels:
    """The last labels, and the features that blocks have of them: each is a number of its own namespace.

    A line has the labels of the lines before it. A prediction has the latest labels and adds none.
    """

    def __init__(self, options: FeatureOptions) -> None:
        self._n = options.lags
        self._own = Namespaces()
        hashes = []
        for name in map(str.encode, lag_names(self._n)):
            data = np.frombuffer(name, np.uint8)
            self._own.add(name, int(murmur3(data, 0, len(data), np.uint32(options.hash_seed))))
            hashes.append(murmur3(data, 0, len(data), np.uint32(self._own.hashes[-1])))
        self._hashes = np.array(hashes, np.uint32)
        self._source: Namespaces | None = None
        self._names = self._own
        self.latest = np.zeros(0, np.float32)  # the last labels, at most `n`, in their order; never changed

    def __bool__(self) -> bool:
        """Return whether there are any lags."""
        return self._n > 0

    def frozen(self) -> LaggedLabels:
        """Return the lags with the labels so far; later labels do not change them."""
        other = copy(self)
        vars(other).update(_source=None)  # so that it gets its own names
        return other

    def state(self) -> dict[str, NDArray[np.float32]]:
        """Return the state, for `restore`: nothing without lags."""
        return {"labels": self.latest} if self else {}

    def restore(self, stored: Stored) -> None:
        """Restore a state of the same options."""
        if self:
            labels = stored["labels"].finite(np.float32, (-1,))
            if len(labels) > self._n:
                raise stored["labels"].fail(f"up to {self._n} labels")
            self.latest = labels

    def add(self, block: Block, held_out: NDArray[np.bool_]) -> None:
        """Add the labels of a learnt block."""
        places = block.event_start[:-1][_learnt(block, held_out)]
        self.latest = np.concatenate([self.latest, block.label[places]])[-self._n :]

    def expand(self, block: Block, held_out: NDArray[np.bool_] | None, latest: NDArray[np.float32]) -> Block:
        """Return a block of single lines with its lags, after the `latest` labels.

        `held_out` marks lines that are not learnt, None all of them.
        """
        places = block.event_start[:-1]
        learnt = np.zeros(len(block), bool) if held_out is None else _learnt(block, held_out)
        labels = np.concatenate([np.full(self._n, np.nan), latest, block.label[places[learnt]]])
        first = len(latest) + np.cumsum(learnt) - learnt  # of the last `n` labels before each line
        lags = labels[first[:, None] + np.arange(self._n - 1, -1, -1)]
        changes = np.clip(lags[:, :-1] - lags[:, 1:], -UNLABELLED, UNLABELLED)
        table = np.zeros((len(block.lines), 2 * self._n - 1), np.float32)
        table[places] = np.nan_to_num(np.hstack([lags, changes]))
        return self._insert(replace(block, namespaces=self._names_of(block)), table)

    def _insert(self, block: Block, table: NDArray[np.float32]) -> Block:
        """Return a block whose lines have the numbers of a table that are not 0, behind their other features.

        The namespaces of the block begin with those of the columns.
        """
        given = table[:-1] != 0
        lines, columns = np.nonzero(given)
        added = np.concatenate([[0], np.cumsum(np.count_nonzero(given, axis=1))])  # before each line
        starts, firsts = block.line_start, block.spans["start"][block.line_start]  # of spans, of features
        spans = np.empty(len(block.spans) + len(lines), SPAN)
        features = np.empty(block.n_features + len(lines), FEATURE)
        new = np.arange(len(lines))
        at = starts[1:][lines] + new
        spans["start"][at], spans["namespace"][at] = firsts[1:][lines] + new, columns
        old = np.arange(len(block.spans))
        shift = added[np.searchsorted(starts[1:], old, side="right")]
        spans["start"][old + shift] = block.spans["start"] + shift
        spans["namespace"][old + shift] = block.spans["namespace"] + len(self._own)
        at = firsts[1:][lines] + new
        features["hash"][at], features["value"][at] = self._hashes[columns], table[lines, columns]
        old = np.arange(block.n_features)
        features[old + added[np.searchsorted(firsts[1:], old, side="right")]] = block.features
        records = block.lines.copy()
        records["start"] += added
        return replace(block, lines=records, spans=spans, features=features)

    def _names_of(self, block: Block) -> Namespaces:
        """Return the namespaces of the lags, then those of a block: the same object for the same source."""
        source, own = block.namespaces, len(self._own)
        if self._source is not source:
            self._source, self._names = source, Namespaces(self._own.names[:], self._own.hashes[:])
        hashes = source.hashes[len(self._names) - own :]  # before names, which another thread may add
        for name, hash_ in zip(source.names[len(self._names) - own :], hashes, strict=False):
            if name in self._own.names:
                text = name.decode()
                raise InputError(f"the namespace {text!r} is reserved, since lags={self._n}: rename it")
            self._names.add(name, hash_)
        return self._names


def _learnt(block: Block, held_out: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which lines of a block are learnt: those with a label and a weight that are not held out."""
    lines = block.lines[block.event_start[:-1]]
    label = lines["label"]
    return np.isfinite(label) & (label != UNLABELLED) & (lines["weight"] > 0) & ~held_out  # type: ignore[no-any-return]
