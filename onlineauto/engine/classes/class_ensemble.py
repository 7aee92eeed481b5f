"""``ClassEnsemble``: the probabilities of classes, by an ensemble that learns all of them at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from onlineauto.engine.classes.class_kernels import (
    INPUTS,
    MOST_CROSSED,
    NUMBERS,
    SLOTS,
    VARIANCE,
    WAVES,
    Classes,
    ClassRows,
    ClassScratch,
    ClassTally,
    Score,
    Targets,
    run_classes,
)
from onlineauto.jit import Bound, Sealed
from onlineauto.learners.trees import make_fit, make_row, make_trees, restore_trees, trees_state, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.state.stored import Stored

VERSION: Final = 2
"""The version of the section of a model file. Version 1 has no trees."""
_SEED = 20_261_126
_PRIOR = 5.0
_FEW = 2
_MOST = 1e30
"""The largest weight that a file may have: larger ones overflow in products."""
_ROUNDING = 1e-6
"""An eigenvalue of a covariance may be below 0 by so much of the largest one, or variances are raised."""


class _OneEvent(NamedTuple):
    """The kernel, bound to memory for one event."""

    rows: ClassRows
    targets: Targets
    searched: NDArray[np.float64]
    result: NDArray[np.float64]
    run: Bound


class ClassEnsemble:
    """An ensemble that predicts and learns the classes of events; see `class_kernels`."""

    def __init__(self, *, hash_bits: int, searched: bool, trees: bool = True) -> None:
        self.n_classes = 0
        self._scratch = _scratch(_FEW, 256)
        n = len(Score)
        self._classes = Classes(
            key=np.zeros(SLOTS, np.uint64),
            input=np.zeros(SLOTS, np.int64),
            number=np.full(INPUTS, -1, np.int64),
            tally=np.array([1, 0, 0], np.int64),
            moments=np.zeros((3, NUMBERS)),
            linear=np.zeros((INPUTS, _FEW)),
            waves=np.zeros((WAVES, _FEW)),
            spread=np.eye(INPUTS) * VARIANCE,
            wave_spread=np.eye(WAVES) * VARIANCE,
            logits=np.zeros((1 << hash_bits, 2, _FEW), np.float32),
            share=np.zeros(_FEW),
            mix=np.zeros(n),
            fisher=np.eye(n) * _PRIOR,
            bias=np.zeros((2, _FEW)),
            trees=make_trees(INPUTS, _FEW, on=trees),
        )
        self._sealed: tuple[Sealed[Classes], Sealed[ClassScratch]] | None = None
        self._one: _OneEvent | None = None
        self._bins_of: tuple[list[bytes], NDArray[np.bool_]] = [], np.zeros(0, bool)
        self._classes.mix[Score.SEARCH] = 1.0
        if not searched:
            self.end_search()

    @property
    def trees(self) -> bool:
        """True if trees are among the members."""
        return len(self._classes.trees.length) > 0

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes of a copy, without addresses."""
        return vars(self) | {"_sealed": None, "_one": None}

    def end_search(self) -> None:
        """Let the logistic regressions replace the search in predictions."""
        mix = self._classes.mix
        mix[[Score.SINGLE, Score.PAIRS]] += mix[Score.SEARCH] / 2
        mix[Score.SEARCH] = 0.0

    def begin_again(self) -> None:
        """Forget everything but the classes."""
        searched, k = bool(self._classes.mix[Score.SEARCH]), self.n_classes
        bits, trees = len(self._classes.logits).bit_length() - 1, self.trees
        vars(self).update(vars(ClassEnsemble(hash_bits=bits, searched=searched, trees=trees)))
        for _ in range(k):
            self.add_class()

    def add_class(self) -> None:
        """Add a class; its initial probability is about that of one event among all so far."""
        k, classes = self.n_classes, self._classes
        capacity = len(classes.share)
        if k == capacity:
            self._classes = classes = _widened(classes, 2 * capacity)
            self._scratch, self._sealed = _scratch(2 * capacity, len(self._scratch.row)), None
        classes.logits[0, 0, k] = -math.log(1.0 + classes.tally[ClassTally.EVENTS])
        self.n_classes += 1
        self._one = None

    def run(
        self,
        block: Block,
        codes: Sequence[int] | NDArray[np.int64] | None = None,
        searched: NDArray[np.float64] | None = None,
    ) -> NDArray[np.float64]:
        """Return the probabilities of events of one line each; learn them if `codes` has their classes.

        Parameters
        ----------
        block : Block
            The events.
        codes : int64[n_events], optional
            The class of each event, -1 to predict only.
        searched : float64[n_events, n_classes], optional
            The probabilities by the search.

        Returns
        -------
        float64[n_events, n_classes]
        """
        n, k = len(block), self.n_classes
        if n == 1:
            return self._run_one(block, -1 if codes is None else int(codes[0]), searched)
        rows = rows_of(block)
        self._make_room(int(np.diff(rows.start).max(initial=0)))
        code = np.full(n, -1, np.int64) if codes is None else np.array(codes, np.int64)
        weight = block.lines["weight"][block.event_start[:-1]].astype(np.float64)
        logs = np.zeros((n, k)) if searched is None else np.log(np.maximum(searched, 1e-9))
        result = np.empty((n, k))
        classes, scratch = self._seal()
        run_classes(classes.record, scratch.record, rows, Targets(code, weight), logs, result)
        return result

    def _run_one(self, block: Block, code: int, searched: NDArray[np.float64] | None) -> NDArray[np.float64]:
        """Run one event, without packing arguments, which takes as long as the kernel."""
        spans, names = block.spans["start"], block.namespaces.names
        line, end_line = block.event_start.tolist()
        span, end_span = (int(block.lines["start"][at]) for at in (line, end_line))
        begin, end = int(spans[span]), int(spans[end_span])
        self._make_room(end - begin)
        if self._one is None or end - begin > len(self._one.rows.hash):
            self._one = self._bind(2 * (end - begin) + 8)
        one = self._one
        if self._bins_of[0] is not names or len(self._bins_of[1]) != len(names):
            self._bins_of = names, np.array([name.endswith(b" bins") for name in names], bool)
        one.rows.start[1] = end - begin
        one.rows.hash[: end - begin] = block.features["hash"][begin:end]
        one.rows.value[: end - begin] = block.features["value"][begin:end]
        one.rows.crossed[: end - begin] = True
        for at in np.flatnonzero(self._bins_of[1][block.spans["namespace"][span:end_span]]).tolist():
            one.rows.crossed[spans[span + at] - begin : spans[span + at + 1] - begin] = False
        one.targets.code[0], one.targets.weight[0] = code, block.lines["weight"][line]
        one.searched[0] = 0.0 if searched is None else np.log(np.maximum(searched[0], 1e-9))
        one.run()
        return one.result.copy()

    def _bind(self, capacity: int) -> _OneEvent:
        """Return memory for an event with up to `capacity` features."""
        rows = ClassRows(
            start=np.zeros(2, np.int64),
            hash=np.zeros(capacity, np.uint32),
            value=np.zeros(capacity, np.float32),
            crossed=np.zeros(capacity, bool),
        )
        targets, (classes, scratch) = Targets(np.zeros(1, np.int64), np.zeros(1)), self._seal()
        searched, result = np.zeros((1, self.n_classes)), np.zeros((1, self.n_classes))
        run = Bound(run_classes, classes.record, scratch.record, rows, targets, searched, result)
        return _OneEvent(rows, targets, searched, result, run)

    def _make_room(self, features: int) -> None:
        """Let an event have so many features."""
        needed = 2 * (features + 1) + MOST_CROSSED * MOST_CROSSED // 2
        if needed > len(self._scratch.row):
            self._scratch = _scratch(len(self._classes.share), 2 * needed)
            self._sealed = self._one = None

    def _seal(self) -> tuple[Sealed[Classes], Sealed[ClassScratch]]:
        """Return the packed records; packing them for each call would take longer than the kernel."""
        if self._sealed is None:
            self._sealed = Sealed(self._classes), Sealed(self._scratch)
        return self._sealed

    def state(self) -> dict[str, Any]:
        """Return the state, for `restore`."""
        classes, k = self._classes, self.n_classes
        inputs, numbers, events = classes.tally.tolist()
        used, row, column = np.flatnonzero(classes.key), *np.tril_indices(inputs)
        wave_row, wave_column = np.tril_indices(WAVES if numbers else 0)
        logits = np.flatnonzero(classes.logits[:, :, :k].any(axis=(1, 2)))
        return {
            "version": VERSION,
            "hash_rows": len(classes.logits),
            "events": events,
            "keys": classes.key[used][np.argsort(classes.input[used])],
            "number": classes.number[:inputs].copy(),
            "moments": classes.moments[:, :numbers].copy(),
            "linear": classes.linear[:inputs, :k].copy(),
            "waves": classes.waves[: len(wave_row) and WAVES, :k].copy(),
            "spread": classes.spread[row, column],
            "wave_spread": classes.wave_spread[wave_row, wave_column],
            "rows": logits,
            "logits": classes.logits[logits, :, :k],
            "share": classes.share[:k].copy(),
            "mix": classes.mix.copy(),
            "fisher": classes.fisher.copy(),
            "bias": classes.bias[:, :k].copy(),
            "trees": trees_state(classes.trees),
        }

    @classmethod
    def restored(cls, stored: Stored, n_classes: int) -> ClassEnsemble:
        """Return the ensemble of a state."""
        if stored["version"].count() > VERSION:
            raise stored["version"].fail(f"at most {VERSION}: load the model with a later onlineauto")
        n_rows = stored["hash_rows"].count(1 << 32)
        if n_rows == 0 or n_rows & (n_rows - 1):
            raise stored["hash_rows"].fail("a power of two")
        trees = "trees" not in stored or not stored["trees"].is_none()
        self, k = cls(hash_bits=n_rows.bit_length() - 1, searched=False, trees=trees), n_classes
        for _ in range(k):
            self.add_class()
        classes, n = self._classes, len(Score)
        keys = stored["keys"].array(np.uint64, (-1,))
        number = stored["number"].array(np.int64, (len(keys) + 1,))
        moments = stored["moments"].finite(np.float64, (3, -1))
        inputs, numbers = len(keys) + 1, moments.shape[1]
        given = number[number >= 0]
        if inputs > INPUTS or numbers > NUMBERS or sorted(given.tolist()) != list(range(numbers)):
            raise stored["number"].fail(f"the numbers of at most {INPUTS} inputs")
        if len(np.unique(keys)) != len(keys) or (keys == 0).any() or (keys > 1 << 32).any():
            raise stored["keys"].fail("different features")
        classes.number[:inputs] = number
        for at, key in enumerate(keys.tolist(), 1):
            slot = (key * 0x9E3779B97F4A7C15 % (1 << 64) >> 40) & (SLOTS - 1)
            while classes.key[slot]:
                slot = (slot + 1) & (SLOTS - 1)
            classes.key[slot], classes.input[slot] = key, at
        classes.tally[:] = inputs, numbers, stored["events"].count()
        if (moments[0] < 0).any() or (moments[2] < 0).any():
            raise stored["moments"].fail("counts and sums of squares, which are at least 0")
        classes.moments[:, :numbers] = moments
        classes.linear[:inputs, :k] = stored["linear"].finite(np.float64, (inputs, k), most=_MOST)
        _restore_square(stored["spread"], classes.spread, inputs)
        if numbers:
            classes.waves[:, :k] = stored["waves"].finite(np.float64, (WAVES, k), most=_MOST)
            _restore_square(stored["wave_spread"], classes.wave_spread, WAVES)
        rows = stored["rows"].counts((-1,), most=n_rows - 1)
        logits = stored["logits"].finite(np.float32, (len(rows), 2, k))
        if (logits[:, 1] < 0).any():
            raise stored["logits"].fail("sums of squares, which are at least 0")
        classes.logits[:, :, :k] = 0.0
        classes.logits[rows, :, :k] = logits
        classes.share[:k] = stored["share"].array_between(
            classes.share[:k], 0.0, float(np.finfo(np.float64).max)
        )
        n_mixed = len(stored["mix"].finite(np.float64, (n,), (n - 1,), most=_MOST))
        classes.mix[:n_mixed] = stored["mix"].finite(np.float64, (n_mixed,), most=_MOST)
        classes.fisher[:n_mixed, :n_mixed] = stored["fisher"].finite(
            np.float64, (n_mixed, n_mixed), most=_MOST
        )
        if "trees" in stored and trees:
            restore_trees(stored["trees"], classes.trees, n_inputs=inputs, outputs=k)
        classes.bias[:, :k] = stored["bias"].finite(np.float64, (2, k), most=_MOST)
        if (np.linalg.eigvalsh(classes.fisher) <= 0).any() or (classes.bias[1] < 0).any():
            raise stored["fisher"].fail("an information, which is positive definite")
        return self


def rows_of(block: Block) -> ClassRows:
    """Return the features of a block's events of one line each."""
    span_start, features = block.spans["start"], block.features
    start = span_start[block.lines["start"][block.event_start]]
    name_bins = [name.endswith(b" bins") for name in block.namespaces.names]
    crossed = np.zeros(len(features), bool)
    of_spans = ~np.array([*name_bins, False], bool)[block.spans["namespace"][:-1]]
    crossed[span_start[0] : span_start[-1]] = np.repeat(of_spans, np.diff(span_start))
    return ClassRows(
        start=np.ascontiguousarray(start, np.int64),
        hash=np.ascontiguousarray(features["hash"]),
        value=np.ascontiguousarray(features["value"]),
        crossed=crossed,
    )


def _restore_square(stored: Stored, square: NDArray[np.float64], n: int) -> None:
    row, column = np.tril_indices(n)
    values = stored.finite(np.float64, (len(row),), most=_MOST)
    if (values[row == column] <= 0).any():
        raise stored.fail("a covariance, whose variances are above 0")
    square[row, column] = square[column, row] = values
    eigenvalues = np.linalg.eigvalsh(square[:n, :n])
    if eigenvalues[0] < -_ROUNDING * eigenvalues[-1]:  # events of huge weights round so far
        square[row[row == column], row[row == column]] -= 2.0 * eigenvalues[0]


def _scratch(capacity: int, rows: int) -> ClassScratch:
    draw, n = np.random.Generator(np.random.PCG64(_SEED)), len(Score)
    return ClassScratch(
        frequency=draw.standard_normal((NUMBERS, WAVES)),
        phase=draw.uniform(0.0, 2.0 * math.pi, WAVES),
        row=np.zeros(rows, np.int64),
        value=np.zeros(rows),
        word=np.zeros(MOST_CROSSED, np.uint64),
        known=np.zeros(rows, np.int64),
        of_known=np.zeros(rows),
        number=np.zeros(NUMBERS),
        wave=np.zeros(WAVES),
        every=np.arange(WAVES),
        gain=np.zeros(INPUTS),
        score=np.zeros((n, capacity)),
        chance=np.zeros(capacity),
        error=np.zeros(capacity),
        own=np.zeros(capacity),
        matrix=np.zeros((n, n)),
        step=np.zeros(n),
        sizes=np.zeros(3, np.int64),
        kept=make_row(),
        fit=make_fit(INPUTS, capacity),
    )


def _widened(classes: Classes, capacity: int) -> Classes:
    """Return the arrays with a larger capacity for classes; rows without weights stay untouched memory."""
    k, changed = len(classes.share), {}
    for name in ("linear", "waves", "share", "bias"):
        array = getattr(classes, name)
        changed[name] = np.zeros((*array.shape[:-1], capacity))
        changed[name][..., :k] = array
    rows = np.flatnonzero(classes.logits.any(axis=(1, 2)))
    changed["logits"] = np.zeros((*classes.logits.shape[:-1], capacity), np.float32)
    changed["logits"][rows, :, :k] = classes.logits[rows]
    return classes._replace(**changed, trees=widened(classes.trees, capacity))
