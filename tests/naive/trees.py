"""Boosted symmetric trees the slow, obvious way: NumPy, all trees of a model at once.

The kernel keeps scores, probabilities and leaves in float32; so does this reference, so that both choose the
same tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

ROWS, WIDTH, COLUMNS, BINS, ROUNDS, DEPTH, SKETCH, FIRST, SAMPLE = 8192, 64, 64, 64, 64, 6, 4, 256, 1024
RATE, PENALTY = 0.2, 1.0
ABSENT, FAR = -1e30, 1e29
CLEARLY, NONE = 1 + 1e-9, 1e-9
FIRST_OF_COSTS, ROUNDS_OF_COSTS, RATE_OF_COSTS, SHRUNK, CUTS, FEWEST = 512, 32, 0.3, 10.0, 256, 16
MIX, WHOLE = 0x9E3779B97F4A7C15, 2**64


class Tree(NamedTuple):
    columns: list[int]
    thresholds: list[float]
    leaves: NDArray[np.float32]

    def leaf_of(self, x: NDArray[np.float32]) -> int:
        leaf = 0
        for column, threshold in zip(self.columns, self.thresholds, strict=True):
            leaf = 2 * leaf + int(x[column] >= threshold)
        return leaf


class Model(NamedTuple):
    inputs: list[int]
    base: NDArray[np.float32]
    rest: float
    trees: list[Tree]


def draw(begin: int, tree: int, at: int) -> int:
    mixed = ((begin * MIX + tree) * MIX + at) % WHOLE
    mixed = (mixed ^ mixed >> 31) * MIX % WHOLE
    return ((mixed ^ mixed >> 29) * MIX % WHOLE) >> 32


def cuts_of(values: NDArray[np.float32], n_bins: int = BINS) -> list[float]:
    ordered = np.sort(values)
    steps = [i for i in range(1, len(ordered)) if ordered[i] > ordered[i - 1]]
    cuts: list[float] = []
    for i in steps:
        enough = len(steps) < n_bins or i * n_bins >= len(ordered) * (len(cuts) + 1)
        if enough and len(cuts) < n_bins - 1:
            cuts.append(float(ordered[i]))
    return cuts


class BoostedTrees:
    """Trees that are fitted to the last events at 256 events, and then at half as many again."""

    def __init__(self) -> None:
        self.rows: list[dict[int, float]] = []
        self.codes: list[int] = []
        self.weights: list[float] = []
        self.fit_at = FIRST
        self.model: Model | None = None
        self.pending: tuple[int, Model] | None = None

    def score(self, inputs: Sequence[tuple[int, float]], k: int) -> Vector:
        if self.model is None:
            return np.zeros(k)
        x = self._columns(self.model, self._row(inputs))
        scores = np.full(k, self.model.rest)
        scores[: len(self.model.base)] = self.model.base
        for tree in self.model.trees:
            scores[: len(self.model.base)] += tree.leaves[tree.leaf_of(x)]
        return scores

    def learn(self, inputs: Sequence[tuple[int, float]], code: int, weight: float, k: int) -> None:
        """Keep an event. A model that was fitted `ROUNDS` events ago replaces the current one."""
        self.rows.append(self._row(inputs))
        self.codes.append(code)
        self.weights.append(float(np.float32(weight)))
        n = len(self.rows)
        if n == self.fit_at:
            self.pending = n + ROUNDS - 1, self._fit(k)
        if self.pending is not None and n == self.pending[0]:
            self.model, self.pending = self.pending[1], None
            self.fit_at += min(self.fit_at // 2, ROWS)

    @staticmethod
    def _row(inputs: Sequence[tuple[int, float]]) -> dict[int, float]:
        return {
            at: float(np.float32(min(max(value, -FAR), FAR))) if np.isfinite(value) else ABSENT
            for at, value in inputs[:WIDTH]
        }

    @staticmethod
    def _columns(model: Model, row: dict[int, float]) -> NDArray[np.float32]:
        return np.array([row.get(at, ABSENT) for at in model.inputs] or [ABSENT], np.float32)

    def _inputs(self, rows: list[dict[int, float]], codes: Vector, weights: Vector, k: int) -> list[int]:
        """Return the inputs with several values, then those whose presence differs most between classes."""
        shares = np.bincount(codes, weights, k) / weights.sum()
        ranks = {}
        for at in sorted({at for row in rows for at in row}):
            values = [row.get(at) for row in rows]
            present = np.array([value is not None for value in values])
            if len({value for value in values if value is not None}) > 1:
                ranks[at] = np.inf
                continue
            counts = np.bincount(codes[present], weights[present], k)
            expected = counts.sum() * shares
            some = expected > 0
            squares = ((counts - expected)[some] ** 2 / expected[some]).sum()
            absent = weights.sum() - counts.sum()
            ranks[at] = squares * weights.sum() / absent if absent > 0 else 0.0
        chosen: list[int] = []
        while len(chosen) < COLUMNS:
            best, rank = -1, NONE
            for at, own in ranks.items():
                if at not in chosen and own > rank * CLEARLY:
                    best, rank = at, own
            if best < 0:
                break
            chosen.append(best)
        return chosen

    def _fit(self, k: int) -> Model:
        begin = len(self.rows)
        rows, n = self.rows[-ROWS:], min(begin, ROWS)
        codes, weights = np.array(self.codes[-ROWS:]), np.array(self.weights[-ROWS:])
        inputs = self._inputs(rows, codes, weights, k)
        base = np.log((np.bincount(codes, weights, k) + 0.5) / (weights.sum() + 0.5 * k))
        rest = float(np.float32(np.log(0.5 / (weights.sum() + 0.5 * k))))
        model = Model(inputs, base.astype(np.float32), rest, [])
        x = np.array([self._columns(model, row) for row in rows])
        sample = x[[i * n // min(n, SAMPLE) for i in range(min(n, SAMPLE))]]
        cuts = [cuts_of(sample[:, c]) for c in range(len(inputs))]
        bins = [
            np.searchsorted(np.array(each, np.float32), x[:, c], side="right") for c, each in enumerate(cuts)
        ]
        scores = np.tile(model.base, (n, 1))
        truth = np.eye(k)[codes]
        for number in range(ROUNDS):
            highest = scores.max(axis=1, keepdims=True).astype(float)
            powers = np.exp(scores.astype(float) - highest)
            total = powers.sum(axis=1, keepdims=True)
            chances = (powers.astype(np.float32) / total).astype(np.float32).astype(float)
            gradients = weights[:, None] * (truth - chances)
            columns, thresholds = [], []
            sums, curve = self._sketch(gradients, chances, weights, (begin, number))
            node = np.zeros(n, int)
            for level in range(DEPTH):
                best = NONE, 0, -1
                for c, each in enumerate(bins):
                    if len(inputs) <= 2 or not draw(begin, number, c) & 1:
                        gains = self._gains(each, len(cuts[c]) + 1, node, 1 << level, sums, curve)
                        for b, gain in enumerate(gains[: len(cuts[c])].tolist()):
                            best = (gain, c, b) if gain > best[0] * CLEARLY else best
                _, column, cut = best
                columns.append(column)
                thresholds.append(cuts[column][cut] if cut >= 0 else np.inf)
                node = 2 * node + (bins[column] > cut if cut >= 0 else 0)
            leaves = np.zeros((1 << DEPTH, k), np.float32)
            for c in range(1 if k == 2 else 0, k):
                slope = np.bincount(node, gradients[:, c], 1 << DEPTH)
                spread = np.bincount(node, weights * chances[:, c] * (1 - chances[:, c]), 1 << DEPTH)
                leaves[:, c] = RATE * slope / (spread + PENALTY)
            scores += leaves[node]
            model.trees.append(Tree(columns, thresholds, leaves))
        return model

    @staticmethod
    def _sketch(
        gradients: Vector, chances: Vector, weights: Vector, drawn: tuple[int, int]
    ) -> tuple[Vector, Vector]:
        """Return the gradients of at most `SKETCH` sums of outputs, and the second derivative."""
        k = gradients.shape[1]
        curve = weights * (1 - (chances**2).sum(axis=1)) * (0.5 if k == 2 else 2 / k)
        if k == 2:
            return gradients[:, 1:], curve
        if k <= SKETCH:
            return gradients, curve
        signs = [[1 if draw(*drawn, COLUMNS + c) >> s & 1 else -1 for s in range(SKETCH)] for c in range(k)]
        return gradients @ np.array(signs) / np.sqrt(SKETCH), curve

    @staticmethod
    def _gains(
        bins: NDArray[np.int64], n_bins: int, node: NDArray[np.int64], nodes: int, sums: Vector, curve: Vector
    ) -> Vector:
        """Return the gain of each cut, summed over the nodes."""

        def table(values: Vector) -> Vector:
            sums = np.bincount(node * n_bins + bins, values, nodes * n_bins)
            return np.asarray(sums.reshape(nodes, n_bins), np.float64)

        below = table(curve).cumsum(axis=1)
        gains = np.zeros(n_bins)
        for s in range(sums.shape[1]):
            left = table(sums[:, s]).cumsum(axis=1)
            right = left[:, -1:] - left
            gains += (left**2 / (below + PENALTY)).sum(axis=0)
            gains += (right**2 / (below[:, -1:] - below + PENALTY)).sum(axis=0)
            gains -= (left[:, -1:] ** 2 / (below[:, -1:] + PENALTY)).sum()
        return gains


class CostTrees:
    """Trees of the costs of logged actions, fitted at 512 events, and then at twice as many."""

    def __init__(self) -> None:
        self.rows: list[dict[int, float]] = []
        self.logged: list[tuple[int, np.float32, np.float32]] = []
        """Action, cost and weight of each row."""
        self.fit_at = FIRST_OF_COSTS
        self.model: Model | None = None
        self.pending: tuple[int, Model] | None = None

    def score(self, inputs: Sequence[tuple[int, float]]) -> Vector:
        """Return the scores of the actions that were known at the last fit, if there was one."""
        if self.model is None:
            return np.zeros(0)
        x = BoostedTrees._columns(self.model, BoostedTrees._row(inputs))
        scores = self.model.base.astype(float)
        for tree in self.model.trees:
            scores += tree.leaves[tree.leaf_of(x)]
        return scores

    def learn(
        self, inputs: Sequence[tuple[int, float]], action: int, cost: float, weight: float, k: int
    ) -> None:
        """Keep an event. A model that was fitted `ROUNDS_OF_COSTS` events ago replaces the current one."""
        self.rows.append(BoostedTrees._row(inputs))
        self.logged.append((action, np.float32(cost), np.float32(weight)))
        n = len(self.rows)
        if n == self.fit_at:
            self.pending = n + ROUNDS_OF_COSTS - 1, self._fit(k)
        if self.pending is not None and n == self.pending[0]:
            self.model, self.pending = self.pending[1], None
            self.fit_at += min(self.fit_at, 2 * ROWS)

    def forget(self, at: int) -> None:
        """Take an input out of all rows and of the model; none may be fitted at that time."""
        assert self.pending is None
        for row in self.rows:
            row.pop(at, None)
        if self.model is not None:
            inputs = [-1 if each == at else each for each in self.model.inputs]
            self.model = self.model._replace(inputs=inputs)

    def _fit(self, k: int) -> Model:
        begin, rows = len(self.rows), self.rows[-ROWS:]
        n = len(rows)
        actions, costs, weights = (np.array(each) for each in zip(*self.logged[-ROWS:], strict=True))
        costs, weights = costs.astype(float), weights.astype(float)
        counts, sums = np.bincount(actions, weights, k), np.bincount(actions, weights * costs, k)
        mean = sums.sum() / counts.sum()
        base = ((sums + SHRUNK * mean) / (counts + SHRUNK)).astype(np.float32)
        model = Model(self._inputs(rows, actions, weights, costs - base[actions], k), base, mean, [])
        x = np.array([BoostedTrees._columns(model, row) for row in rows])
        sample = x[[i * n // min(n, SAMPLE) for i in range(min(n, SAMPLE))]]
        columns = len(model.inputs)
        n_bins = min(max(CUTS // max(columns, 1), FEWEST), BINS)
        cuts = [cuts_of(sample[:, c], n_bins) for c in range(columns)]
        bins = [np.searchsorted(np.array(each, np.float32), x[:, c], "right") for c, each in enumerate(cuts)]
        scores = base[actions]
        for number in range(ROUNDS_OF_COSTS):
            residuals = costs - scores.astype(float)
            least = NONE * (weights * residuals**2).sum()
            tests, thresholds, node = [], [], np.zeros(n, int)
            for level in range(DEPTH):
                best = least, 0, -1
                for c in range(columns):
                    if not self._is_left_out(draw(begin, number, c), level, columns):
                        gains = BoostedTrees._gains(
                            bins[c],
                            len(cuts[c]) + 1,
                            node * k + actions,
                            k << level,
                            (weights * residuals)[:, None],
                            weights,
                        )
                        for b, gain in enumerate(gains[: len(cuts[c])].tolist()):
                            best = (gain, c, b) if gain > best[0] * CLEARLY else best
                _, column, cut = best
                tests.append(column)
                thresholds.append(cuts[column][cut] if cut >= 0 else np.inf)
                node = 2 * node + (bins[column] > cut if cut >= 0 else 0)
            group, n_groups = node * k + actions, k << DEPTH
            slopes = np.bincount(group, weights * residuals, n_groups)
            leaves = RATE_OF_COSTS * slopes / (np.bincount(group, weights, n_groups) + PENALTY)
            model.trees.append(Tree(tests, thresholds, leaves.astype(np.float32).reshape(-1, k)))
            scores = scores + model.trees[-1].leaves[node, actions]
        return model

    @staticmethod
    def _is_left_out(drawn: int, level: int, columns: int) -> bool:
        """Return whether a level leaves a column out: it tests a quarter, half of up to 8, all of up to 4."""
        of_four = drawn >> 2 * level & 3
        return columns > 4 and (of_four != 0 if columns > 8 else of_four > 1)

    @staticmethod
    def _inputs(
        rows: list[dict[int, float]], actions: Vector, weights: Vector, beyond: Vector, k: int
    ) -> list[int]:
        """Return the inputs with several values, then those whose presence explains most of the variance."""
        squares, ranks = (weights * beyond**2).sum(), {}
        for at in sorted({at for row in rows for at in row}):
            if len({row[at] for row in rows if at in row}) > 1:
                ranks[at] = np.inf
                continue
            present = np.array([at in row for row in rows])
            gain = 0.0
            for part, sign in ((present, 1), (~present, 1), (present | True, -1)):
                slopes = np.bincount(actions[part], (weights * beyond)[part], k)
                gain += sign * (slopes**2 / (np.bincount(actions[part], weights[part], k) + PENALTY)).sum()
            ranks[at] = gain * weights.sum() / squares if squares > 0 else 0.0
        chosen: list[int] = []
        while len(chosen) < COLUMNS:
            best, rank = -1, NONE
            for at, own in ranks.items():
                if at not in chosen and own > rank * CLEARLY:
                    best, rank = at, own
            if best < 0:
                break
            chosen.append(best)
        return chosen
