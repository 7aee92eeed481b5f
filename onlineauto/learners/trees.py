"""Boosted trees before the first event, and in model files; see `tree_kernels`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.learners.tree_kernels import (
    BINS,
    COLUMNS,
    DEPTH,
    FIRST,
    LEAVES,
    ROUNDS,
    ROWS,
    SAMPLE,
    SKETCH,
    WIDTH,
    Fit,
    Grown,
    TreeRow,
    Trees,
)

if TYPE_CHECKING:
    from onlineauto.features.stored import Stored

_KEPT = ROWS + ROUNDS


def make_trees(n_inputs: int, outputs: int, *, on: bool = True) -> Trees:
    """Return trees before the first event, with a capacity for inputs and outputs; none grow if not `on`."""
    kept = _KEPT if on else 0
    return Trees(
        input=np.zeros((kept, WIDTH), np.uint16),
        value=np.zeros((kept, WIDTH), np.float32),
        length=np.zeros(kept, np.int64),
        code=np.zeros(kept, np.int64),
        weight=np.zeros(kept, np.float32),
        tally=np.array([0, FIRST, 0, -1, 0], np.int64),
        outputs=np.zeros(2, np.int64),
        columns=np.zeros(2, np.int64),
        column=np.zeros((2, COLUMNS), np.int64),
        place=np.full((2, n_inputs), -1, np.int64),
        split=np.zeros((2, ROUNDS, DEPTH), np.int64),
        threshold=np.zeros((2, ROUNDS, DEPTH), np.float32),
        leaf=np.zeros((2, ROUNDS, LEAVES, outputs), np.float32),
        base=np.zeros((2, outputs + 1), np.float32),
    )


def make_row() -> TreeRow:
    """Return memory for an event."""
    return TreeRow(
        input=np.zeros(WIDTH, np.int64),
        value=np.zeros(WIDTH, np.float32),
        length=np.zeros(1, np.int64),
        x=np.zeros(COLUMNS, np.float32),
    )


def make_fit(n_inputs: int, outputs: int) -> Fit:
    """Return memory for a fit."""
    return Fit(
        prepared=np.full(1, -1, np.int64),
        x=np.zeros(COLUMNS, np.float32),
        bins=np.zeros((COLUMNS, ROWS), np.uint8),
        cuts=np.zeros((COLUMNS, BINS), np.float32),
        n_cuts=np.zeros(COLUMNS, np.int64),
        sample=np.zeros((COLUMNS, SAMPLE), np.float32),
        rank=np.zeros(n_inputs),
        counts=np.zeros((n_inputs + 1, outputs)),
        first=np.zeros((3, n_inputs)),
        score=np.zeros((ROWS, outputs), np.float32),
        chance=np.zeros((ROWS, outputs), np.float32),
        gradient=np.zeros((ROWS, SKETCH + 1)),
        node=np.zeros(ROWS, np.int64),
        histogram=np.zeros(LEAVES // 2 * BINS * (SKETCH + 1)),
        total=np.zeros((LEAVES // 2, SKETCH + 1)),
        left=np.zeros(SKETCH + 1),
        gain=np.zeros(BINS),
        sums=np.zeros((2, LEAVES, outputs)),
    )


def widened(trees: Trees, outputs: int) -> Trees:
    """Return the trees with a larger capacity for outputs."""
    leaf = np.zeros((*trees.leaf.shape[:-1], outputs), np.float32)
    leaf[..., : trees.leaf.shape[-1]] = trees.leaf
    before = trees.base.shape[-1]
    base = np.pad(trees.base, ((0, 0), (0, outputs + 1 - before)), mode="edge")
    return trees._replace(leaf=leaf, base=base)


def trees_state(trees: Trees) -> dict[str, Any] | None:
    """Return the state, for `restore_trees`; None if there are no trees."""
    if not len(trees.length):
        return None
    events, fit, model, grown, _ = trees.tally.tolist()
    rows = np.arange(max(events - _KEPT, 0), events) % _KEPT
    used = np.arange(WIDTH) < trees.length[rows, None]
    return {
        "events": events,
        "fit": fit,
        "length": trees.length[rows],
        "input": trees.input[rows][used].astype(np.uint32),
        "value": trees.value[rows][used],
        "code": trees.code[rows],
        "weight": trees.weight[rows],
        "model": _model_state(trees, model, ROUNDS) if trees.outputs[model] else None,
        "next": _model_state(trees, 1 - model, grown) if grown >= 0 else None,
    }


def _model_state(trees: Trees, model: int, n: int) -> dict[str, Any]:
    k = int(trees.outputs[model])
    return {
        "column": trees.column[model, : trees.columns[model]].copy(),
        "split": trees.split[model, :n].astype(np.uint8),
        "threshold": trees.threshold[model, :n].copy(),
        "leaf": trees.leaf[model, :n, :, :k].copy(),
        "base": trees.base[model, : k + 1].copy(),
    }


def restore_trees(stored: Stored, trees: Trees, *, n_inputs: int, outputs: int) -> None:
    """Copy a stored state into new trees.

    Raises
    ------
    ValueError
        The state does not fit the number of inputs or of outputs, or is no state.
    """
    tally = trees.tally
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
    if not stored["model"].is_none() and _restore_model(stored["model"], trees, 0, n_inputs) != ROUNDS:
        raise stored["model"]["split"].fail(f"{ROUNDS} trees")
    grown = -1
    if not stored["next"].is_none():
        grown = _restore_model(stored["next"], trees, 1, n_inputs)
        tally[Grown.BEGIN] = begin = events - grown + 1
        if not 0 < grown < ROUNDS or begin < 1:
            raise stored["next"].fail(f"1 to {ROUNDS - 1} trees")
    tally[Grown.TREES] = grown
    fit = int(tally[Grown.FIT])
    is_valid = fit == int(tally[Grown.BEGIN]) if grown >= 0 else events < fit <= events + ROWS
    if not is_valid:
        raise stored["fit"].fail("the number of events of the fit that grows, or of the next fit")


def _restore_model(stored: Stored, trees: Trees, model: int, n_inputs: int) -> int:
    """Copy a stored model; return its number of trees."""
    capacity = trees.leaf.shape[-1]
    split = stored["split"].array(np.uint8, (-1, DEPTH))
    n = len(split)
    column = stored["column"].counts((-1,), most=n_inputs - 1)
    if len(column) > COLUMNS or len(set(column.tolist())) < len(column):
        raise stored["column"].fail(f"at most {COLUMNS} different inputs")
    base = stored["base"].finite(np.float32, (-1,))
    k = len(base) - 1
    if n > ROUNDS or not 0 < k <= capacity or (split.size and split.max() >= max(len(column), 1)):
        raise stored["split"].fail(f"at most {ROUNDS} trees of {len(column)} columns")
    trees.outputs[model], trees.columns[model] = k, len(column)
    trees.column[model, : len(column)] = column
    trees.place[model, column] = np.arange(len(column))
    trees.split[model, :n] = split
    threshold = stored["threshold"].array(np.float32, (n, DEPTH))
    if np.isnan(threshold).any():
        raise stored["threshold"].fail("numbers")
    trees.threshold[model, :n] = threshold
    trees.leaf[model, :n, :, :k] = stored["leaf"].finite(np.float32, (n, LEAVES, k))
    trees.base[model, : k + 1], trees.base[model, k + 1 :] = base, base[-1]
    return n
