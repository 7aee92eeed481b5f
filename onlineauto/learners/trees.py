"""Boosted trees before the first event, and in model files; see `tree_kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.learners.tree_records import (
    BINS,
    COLUMNS,
    DEPTH,
    FEW,
    FIRST,
    FIRST_OF_COSTS,
    LEAVES,
    MOST_OF_COSTS,
    ROUNDS,
    ROUNDS_OF_COSTS,
    ROWS,
    SAMPLE,
    SKETCH,
    WIDTH,
    Fit,
    FitColumns,
    FitRows,
    Grown,
    TreeRow,
    Trees,
)
from onlineauto.state.schema import make, to_predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from onlineauto.state.stored import Stored

_KEPT = ROWS + ROUNDS


def make_trees(n_inputs: int, outputs: int, *, on: bool = True, costs: bool = False) -> Trees:
    """Return trees before the first event, with a capacity for inputs and outputs; none grow if not `on`.

    They learn `costs` of logged outputs, or else classes.
    """
    kept, rounds = _KEPT if on else 0, ROUNDS_OF_COSTS if costs else ROUNDS
    sizes = {"rows": kept, "width": WIDTH, "costs": kept if costs else 0, "rounds": rounds}
    return make(
        Trees,
        sizes | {"inputs": n_inputs, "leaves": rounds * LEAVES * outputs, "bases": outputs + 1},
        tally=np.array([0, FIRST_OF_COSTS if costs else FIRST, 0, -1, 0], np.int64),
    )


def make_row() -> TreeRow:
    """Return memory for an event."""
    return TreeRow(
        input=np.zeros(WIDTH, np.int64),
        value=np.zeros(WIDTH, np.float32),
        length=np.zeros(1, np.int64),
        x=np.zeros(COLUMNS, np.float32),
    )


def make_fit(n_inputs: int, outputs: int, *, costs: bool = False, n_rows: int = ROWS) -> Fit:
    """Return memory for a fit of `n_rows`, of classes or of costs."""
    sums, firsts = 1 if costs else SKETCH, outputs if costs else 1
    groups = LEAVES * firsts
    columns = FitColumns(
        bins=np.zeros((COLUMNS, n_rows), np.uint8),
        cuts=np.zeros((COLUMNS, BINS), np.float32),
        n_cuts=np.zeros(COLUMNS, np.int64),
        sample=np.zeros((COLUMNS, SAMPLE), np.float32),
        rank=np.zeros(n_inputs),
        first=np.zeros((3, n_inputs)),
        counts=np.zeros((outputs, n_inputs + 1)),
        costs=np.zeros((outputs if costs else 0, n_inputs + 1)),
        present=np.zeros(n_rows * COLUMNS // FEW, np.uint8),
        begin=np.zeros(n_rows + 1, np.int32),
        tested=np.zeros(COLUMNS, np.int64),
    )
    rows = FitRows(
        x=np.zeros(COLUMNS, np.float32),
        score=np.zeros((n_rows, 1 if costs else outputs), np.float32),
        chance=np.zeros((0 if costs else n_rows, outputs), np.float32),
        gradient=np.zeros((n_rows, sums + 1)),
        sorted=np.zeros((n_rows, sums + 1)),
        above=np.zeros((n_rows, sums + 1)),
        node=np.zeros(n_rows, np.uint8),
        order=np.zeros(n_rows, np.uint16),
        order_first=np.zeros(n_rows, np.uint16),
        next=np.zeros(n_rows, np.uint16),
        begin=np.zeros(groups + 1, np.int64),
        begin_first=np.zeros(firsts + 1, np.int64),
    )
    return Fit(
        prepared=np.array([-1, 0], np.int64),
        columns=columns,
        rows=rows,
        histogram=np.zeros(max(BINS, COLUMNS) * (sums + 1)),
        total=np.zeros((groups, sums + 1)),
        left=np.zeros((sums + 1, BINS)),
        gain=np.zeros(BINS),
        gain_of=np.zeros(COLUMNS),
        sums=np.zeros((2, LEAVES, 0 if costs else outputs)),
    )


def widened(trees: Trees, outputs: int) -> Trees:
    """Return the trees with a larger capacity for outputs."""
    before, rounds = trees.base.shape[-1], trees.split.shape[1]
    more = outputs + 1 - before
    leaf = np.pad(trees.leaf, ((0, 0), (0, rounds * LEAVES * more)))
    return trees._replace(leaf=leaf, base=np.pad(trees.base, ((0, 0), (0, more)), mode="edge"))


def _leaves_of(trees: Trees, model: int) -> NDArray[np.float32]:
    """Return the values of the leaves of a model, [rounds, LEAVES, outputs]: a view."""
    shape = trees.split.shape[1], LEAVES, int(trees.outputs[model])
    return trees.leaf[model, : np.prod(shape)].reshape(shape)


def trees_to_predict(trees: Trees) -> Trees:
    """Return trees that share the models, and keep no rows."""
    return to_predict(trees)


def rows_of(trees: Trees) -> NDArray[np.int64]:
    """Return the indices of the rows of the last events, the oldest first."""
    events = int(trees.tally[Grown.EVENTS])
    return np.arange(max(events - _KEPT, 0), events) % _KEPT


def forget_rows(trees: Trees, fit: Fit, kept: int) -> None:
    """Forget all but the `kept` latest rows, and begin a fit of these with the next event."""
    rows = rows_of(trees)[-kept:]
    if len(rows) < kept:
        return
    for name in ("input", "value", "length", "code", "weight", *(("cost",) if len(trees.cost) else ())):
        array = getattr(trees, name)
        array[:kept] = array[rows]
    trees.tally[[Grown.EVENTS, Grown.FIT, Grown.TREES]] = kept, kept + 1, -1
    fit.prepared[0] = -1


class TreeBranch(NamedTuple):
    """Trees that are merged, and the merged index of each of their inputs and outputs; -1 for none."""

    trees: Trees
    inputs: NDArray[np.int64]
    outputs: NDArray[np.int64]


class _Rows(NamedTuple):
    """Kept rows with merged indices. `late` orders them: minus the share of their branch that is later."""

    late: NDArray[np.float64]
    cost: NDArray[np.float32]
    weight: NDArray[np.float32]
    code: NDArray[np.int64]
    length: NDArray[np.int64]
    input: NDArray[np.int64]  # [rows, width], 0 beyond the length, as in `value`
    value: NDArray[np.float32]


def merge_trees(base: TreeBranch, branches: Sequence[TreeBranch]) -> Trees:
    """Return trees of costs with the rows of all branches, and the model of the branch that learnt most.

    Rows of branches are interleaved, so that the latest rows are the latest of every branch. A model that
    grows is given up; its fit begins again with the next event.
    """
    merged = make_trees(base.trees.place.shape[1], base.trees.base.shape[-1] - 1, costs=True)
    began = _events(base)
    live = sorted((branch for branch in branches if _events(branch) > began), key=_precedence)
    late = [_lateness(branch, _events(branch) - began) for branch in live]
    n_new = sum(map(len, late))
    least = np.partition(np.concatenate(late), n_new - _KEPT)[n_new - _KEPT] if n_new > _KEPT else -np.inf
    width = max(int(branch.trees.length.max(initial=0)) for branch in (base, *live))
    latest = [_latest_rows(each, of[of >= least], width) for each, of in zip(live, late, strict=True)]
    parts = [_latest_rows(base, _lateness(base, _KEPT)[: max(_KEPT - n_new, 0)], width)]
    if latest:
        new = _joined(latest)
        parts.append(_taken(new, _in_order(new)[-_KEPT:]))
    kept = _joined(parts)
    events = began + sum(_events(branch) - began for branch in live)
    at = np.arange(events - len(kept.late), events) % _KEPT
    for name in ("cost", "weight", "code", "length"):
        getattr(merged, name)[at] = getattr(kept, name)
    merged.input[at, :width], merged.value[at, :width] = kept.input, kept.value
    most = (live or [base])[-1]
    if most.trees.outputs[most.trees.tally[Grown.MODEL]]:
        _copy_model(most, merged)
    merged.tally[Grown.EVENTS] = events
    merged.tally[Grown.FIT] = max(
        events + 1, *(int(branch.trees.tally[Grown.FIT]) for branch in (base, *live))
    )
    return merged


def _events(branch: TreeBranch) -> int:
    """Return the number of events that a branch has learnt in all."""
    return int(branch.trees.tally[Grown.EVENTS])


def _precedence(branch: TreeBranch) -> tuple[int, int, bytes]:
    """Return by what the model of a branch is chosen, whatever the order of branches."""
    model = branch.trees.tally[Grown.MODEL]
    return _events(branch), int(branch.trees.outputs[model]), _leaves_of(branch.trees, model).tobytes()


def _lateness(branch: TreeBranch, n: int) -> NDArray[np.float64]:
    """Return minus the share of the last `n` rows that is later than each row; the latest row is first."""
    return -np.arange(min(n, len(rows_of(branch.trees)))) / n


def _latest_rows(branch: TreeBranch, late: NDArray[np.float64], width: int) -> _Rows:
    """Return the latest rows of at most `width` inputs, the oldest first, with merged indices.

    Inputs without a merged index are left out. A row of an output without one has no weight.
    """
    trees, n = branch.trees, len(late)
    rows = rows_of(trees)[-n:] if n else np.zeros(0, np.int64)
    outputs = np.append(branch.outputs, -1)
    code = outputs[np.minimum(trees.code[rows], len(outputs) - 1)]
    used = np.arange(width) < trees.length[rows, None]
    inputs = np.full(used.shape, -1)
    inputs[used] = branch.inputs[_of_width(trees.input[rows], width)[used]]
    return _Rows(
        late[::-1],
        trees.cost[rows],
        np.where(code >= 0, trees.weight[rows], np.float32(0)),
        np.maximum(code, 0),
        *_compacted(inputs, _of_width(trees.value[rows], width)),
    )


def _of_width(rows: NDArray[Any], width: int) -> NDArray[Any]:
    """Return rows of this width, cut or with zeros at their end."""
    return np.pad(rows[:, :width], ((0, 0), (0, max(width - rows.shape[1], 0))))


def _compacted(
    inputs: NDArray[np.int64], values: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]:
    """Return the number of inputs of each row, and inputs and values without those that are -1."""
    known = inputs >= 0
    row, column = known.nonzero()
    length = np.count_nonzero(known, axis=1)
    at = row, np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    left, taken = np.zeros_like(inputs), np.zeros_like(values)
    left[at], taken[at] = inputs[row, column], values[row, column]
    return length, left, taken


def _joined(parts: Sequence[_Rows]) -> _Rows:
    return _Rows(*map(np.concatenate, zip(*parts, strict=True)))


def _taken(rows: _Rows, at: NDArray[np.int64]) -> _Rows:
    return _Rows._make(column[at] for column in rows)


def _in_order(rows: _Rows) -> NDArray[np.int64]:
    """Return the order of rows by all their numbers, so that it does not depend on that of branches."""
    order = np.lexsort((rows.code, rows.weight, rows.cost, rows.late))
    heads = [column[order] for column in (rows.late, rows.cost, rows.weight, rows.code)]
    same = np.logical_and.reduce([head[1:] == head[:-1] for head in heads])
    tied = np.append(same, False) | np.append(False, same)
    if tied.any():  # few rows: only these are compared by their inputs
        group = np.append(0, np.cumsum(~same))[tied]
        some = _taken(rows, order[tied])
        inputs = np.where(np.arange(some.input.shape[1]) < some.length[:, None], some.input, -1)
        keys = (*some.value.T[::-1], *inputs.T[::-1], group)
        order[tied] = order[tied][np.lexsort(keys)]
    return order


def _copy_model(branch: TreeBranch, merged: Trees) -> None:
    """Copy the current model of a branch; outputs that it does not know have the mean cost."""
    trees, model = branch.trees, branch.trees.tally[Grown.MODEL]
    k = int(trees.outputs[model])
    merged_outputs = branch.outputs[:k]
    outputs = int(merged_outputs.max()) + 1
    merged.outputs[0] = outputs
    merged.base[0] = trees.base[model, k]
    merged.base[0, merged_outputs[merged_outputs >= 0]] = trees.base[model, :k][merged_outputs >= 0]
    leaves = _leaves_of(trees, model)[..., merged_outputs >= 0]
    _leaves_of(merged, 0)[..., merged_outputs[merged_outputs >= 0]] = leaves
    merged.split[0], merged.threshold[0] = trees.split[model], trees.threshold[model]
    column = branch.inputs[trees.column[model, : trees.columns[model]]]
    merged.columns[0] = len(column)
    merged.column[0, : len(column)] = np.maximum(column, 0)
    merged.place[0, column[column >= 0]] = np.flatnonzero(column >= 0)


def trees_state(trees: Trees) -> dict[str, Any] | None:
    """Return the state, for `restore_trees`; None if there are no trees.

    That of trees that only predict is their model.
    """
    events, fit, model, grown, _ = trees.tally.tolist()
    if not len(trees.length):
        return {"model": _model_state(trees, model, trees.split.shape[1])} if trees.outputs[model] else None
    rows = rows_of(trees)
    used = np.arange(WIDTH) < trees.length[rows, None]
    costs = {"cost": trees.cost[rows]} if len(trees.cost) else {}
    return costs | {
        "events": events,
        "fit": fit,
        "length": trees.length[rows],
        "input": trees.input[rows][used].astype(np.uint32),
        "value": trees.value[rows][used],
        "code": trees.code[rows],
        "weight": trees.weight[rows],
        "model": _model_state(trees, model, trees.split.shape[1]) if trees.outputs[model] else None,
        "next": _model_state(trees, 1 - model, grown) if grown >= 0 else None,
    }


def _model_state(trees: Trees, model: int, n: int) -> dict[str, Any]:
    k = int(trees.outputs[model])
    return {
        "column": trees.column[model, : trees.columns[model]].copy(),
        "split": trees.split[model, :n].astype(np.uint8),
        "threshold": trees.threshold[model, :n].copy(),
        "leaf": _leaves_of(trees, model)[:n].copy(),
        "base": trees.base[model, : k + 1].copy(),
    }


def restore_trees(stored: Stored, trees: Trees, *, n_inputs: int, outputs: int) -> None:
    """Copy a stored state into new trees."""
    if not len(trees.length):
        if not stored["model"].is_none():
            _restore_model(stored["model"], trees, 0, n_inputs)
        return
    tally, rounds = trees.tally, trees.split.shape[1]
    tally[Grown.EVENTS] = events = stored["events"].count()
    tally[Grown.FIT] = stored["fit"].count()
    length = stored["length"].counts((min(events, _KEPT),), most=WIDTH)
    rows = np.arange(events - len(length), events) % _KEPT
    trees.length[rows] = length
    at = np.repeat(rows, length), (np.arange(WIDTH) < length[:, None]).nonzero()[1]
    inputs = stored["input"].array(np.uint32, (int(length.sum()),))
    if inputs.size and inputs.max() >= n_inputs:
        raise stored["input"].fail(f"inputs below {n_inputs}")
    trees.input[at] = inputs
    trees.value[at] = stored["value"].finite(np.float32, inputs.shape)
    trees.code[rows] = stored["code"].counts(length.shape, most=outputs - 1)
    trees.weight[rows] = stored["weight"].array_between(
        trees.weight[rows], 0.0, float(np.finfo(np.float32).max)
    )
    if len(trees.cost):
        trees.cost[rows] = stored["cost"].finite(np.float32, length.shape)
    if not stored["model"].is_none() and _restore_model(stored["model"], trees, 0, n_inputs) != rounds:
        raise stored["model"]["split"].fail(f"{rounds} trees")
    grown = -1
    if not stored["next"].is_none():
        grown = _restore_model(stored["next"], trees, 1, n_inputs)
        tally[Grown.BEGIN] = begin = events - grown + 1
        if not 0 < grown < rounds or begin < 1:
            raise stored["next"].fail(f"1 to {rounds - 1} trees")
    tally[Grown.TREES] = grown
    fit = int(tally[Grown.FIT])
    is_valid = (
        fit == int(tally[Grown.BEGIN])
        if grown >= 0
        else events < fit <= events + (MOST_OF_COSTS if len(trees.cost) else ROWS)
    )
    if not is_valid:
        raise stored["fit"].fail("the number of events of the fit that grows, or of the next fit")


def _restore_model(stored: Stored, trees: Trees, model: int, n_inputs: int) -> int:
    """Copy a stored model; return its number of trees."""
    capacity = trees.base.shape[-1] - 1
    split = stored["split"].array(np.uint8, (-1, DEPTH))
    n = len(split)
    column = stored["column"].counts((-1,), most=n_inputs - 1)
    known = column[column > 0]  # 0 stands for inputs that are no longer known
    if len(column) > COLUMNS or len(set(known.tolist())) < len(known):
        raise stored["column"].fail(f"at most {COLUMNS} different inputs")
    base = stored["base"].finite(np.float32, (-1,))
    k = len(base) - 1
    if (
        n > trees.split.shape[1]
        or not 0 < k <= capacity
        or (split.size and split.max() >= max(len(column), 1))
    ):
        raise stored["split"].fail(f"at most {trees.split.shape[1]} trees of {len(column)} columns")
    trees.outputs[model], trees.columns[model] = k, len(column)
    trees.column[model, : len(column)] = column
    trees.place[model, column] = np.arange(len(column))
    trees.split[model, :n] = split
    threshold = stored["threshold"].array(np.float32, (n, DEPTH))
    if np.isnan(threshold).any():
        raise stored["threshold"].fail("numbers")
    trees.threshold[model, :n] = threshold
    _leaves_of(trees, model)[:n] = stored["leaf"].finite(np.float32, (n, LEAVES, k))
    trees.base[model, : k + 1], trees.base[model, k + 1 :] = base, base[-1]
    return n
