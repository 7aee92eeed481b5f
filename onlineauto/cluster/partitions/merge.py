"""Merge: one state from the ends of a round's chunks, which all continued from the same base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.cluster.partitions.state import (
    TableCells,
    arrays_to_send,
    load_dense,
    put_rows,
    rebuild_ensemble,
    records_of,
    records_of_ensemble,
    tables_of,
    take_rows,
)
from onlineauto.engine.ensemble.branches import mean_retention, merge_statistic, shares
from onlineauto.engine.ensemble.merge import merge_ensembles
from onlineauto.engine.records.search import Tally
from onlineauto.estimators.scale_kernels import FLOOR
from onlineauto.learners.gradient_kernels import GRADIENTS, SCALE
from onlineauto.state.schema import merge, rebuild

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.partitions.worker import ChunkEnd
    from onlineauto.learners.gradient_kernels import Rule
    from onlineauto.workspace.workspace import Workspace

    Arrays = dict[str, NDArray[Any]]
    Rows = dict[str, NDArray[np.int64]]


def merge_round(workspace: Workspace, ends: Sequence[ChunkEnd]) -> None:
    """Merge ends of chunks into the base, which the workspace holds."""
    live = workspace.searching.live_configs.arrays
    seen, floor = live.tally[Tally.LEARNT], bool(live.statistics.scale[FLOOR] > 0.0)
    learnt = [int(end.state.dense["live.tally"][Tally.LEARNT] - seen) for end in ends]
    context = _Round(floor, float(seen), learnt)
    merged = {
        prefix: merge(record, [rebuild(record, prefix, end.state.dense) for end in ends], context)
        for prefix, record in records_of(workspace).items()
    }
    dense = arrays_to_send(merged)
    tables = tables_of(workspace)
    rows = {
        name: _union(
            [end.state.tables[name].rows for end in ends if name in end.state.tables], len(table.arrays[0])
        )
        for name, table in tables.items()
    }
    parts = _merge_members(workspace, ends, rows, learnt, dense, floor=floor)
    parts["model"] = merge_weights(
        take_rows(tables["model"], rows["model"]),
        _tables_of(ends, "model", rows, tables),
        workspace.learner.rule,
    )
    if "screen" in tables:
        parts["screen"] = _merge_screen(
            take_rows(tables["screen"], rows["screen"]), _tables_of(ends, "screen", rows, tables)
        )
    load_dense(workspace, dense)
    for name, part in parts.items():
        put_rows(tables[name], part)
    workspace.learner.model.touched[rows["model"]] = True


class _Round(NamedTuple):
    """The context in which the search merges; see `Round`."""

    floor: bool
    seen: float  # events learnt before
    learnt: list[int]  # by each end

    def mean(self, base: Any, ends: Sequence[Any], memory: float) -> NDArray[np.float64]:
        """Return a mean of the latest `memory` events."""
        return merge_statistic(base, ends, shares(self.learnt, mean_retention(self.seen, memory)))


def _union(rows: Sequence[NDArray[np.int64]], n: int) -> NDArray[np.int64]:
    """Return the sorted cells, of `n`, that are in any of `rows`."""
    changed = np.zeros(n, np.bool_)
    for cells in rows:
        changed[cells] = True
    return np.flatnonzero(changed)


def _tables_of(ends: Sequence[ChunkEnd], name: str, rows: Rows, tables: Any) -> list[TableCells]:
    """Return the cells `rows` of each end: its own, and those of the base that it has not changed."""
    base = take_rows(tables[name], rows[name])
    result = []
    for end in ends:
        values = tuple(array.copy() for array in base.values)
        if name in end.state.tables:
            cells = end.state.tables[name]
            positions = np.searchsorted(rows[name], cells.rows)
            for target, source in zip(values, cells.values, strict=True):
                target[positions] = source
        result.append(TableCells(rows[name], values))
    return result


def _merge_members(
    workspace: Workspace,
    ends: Sequence[ChunkEnd],
    rows: Rows,
    learnt: Sequence[int],
    dense: Arrays,
    *,
    floor: bool,
) -> dict[str, TableCells]:
    """Merge the ensemble: put its small arrays into `dense`, and return the cells of its members."""
    live = workspace.searching.live_configs.arrays
    if not live.ensemble.on:
        return {}
    tables = tables_of(workspace)
    member_tables = {name: table for name, table in tables.items() if table.paths}

    def arrays_of(parts: Mapping[str, TableCells]) -> Arrays:
        return {
            path: np.ascontiguousarray(values.T) if values.ndim > 1 else values
            for name, table in member_tables.items()
            for path, values in zip(table.paths, parts[name].values, strict=True)
        }

    began = arrays_of({name: take_rows(table, rows[name]) for name, table in member_tables.items()})
    base = rebuild_ensemble(live.ensemble, arrays_to_send(records_of_ensemble(live.ensemble)) | began)
    cells = {name: _tables_of(ends, name, rows, tables) for name in member_tables}
    level = {"ensemble.test.level": live.ensemble.test.level}
    branches = [
        rebuild_ensemble(
            live.ensemble,
            end.state.dense | level | arrays_of({name: parts[number] for name, parts in cells.items()}),
        )
        for number, end in enumerate(ends)
    ]
    merged = merge_ensembles(base, branches, learnt=learnt, floor=floor, ordered=True)
    paths = {path for table in member_tables.values() for path in table.paths}
    result = arrays_to_send(records_of_ensemble(merged))
    dense |= {path: array for path, array in result.items() if path not in paths}
    return {
        name: TableCells(
            rows[name],
            tuple(result[path].T if result[path].ndim > 1 else result[path] for path in table.paths),
        )
        for name, table in member_tables.items()
    }


def merge_weights(base: TableCells, ends: Sequence[TableCells], rule: Rule) -> TableCells:
    """Return the merged weights and statistics of live configs.

    Changes of a weight are averaged over the ends that have learnt it, so a rare feature, which one end has
    seen, moves as in that end. They do not count by squared gradients: with few clicks, these are almost only
    those of clicks, and ends without a click would be ignored. Squared gradients add up, and scales are the
    largest.
    """
    began, statistics = base.values[0], base.values[1].copy()
    tables = [(began, base.values[1]), *(end.values for end in ends)]
    scale = np.maximum.reduce([table[:, SCALE] for _, table in tables])
    first, *weights = [_rescaled(pair[0], pair[1][:, SCALE], scale, rule) for pair in tables]
    gradients = [end.values[1][:, GRADIENTS] for end in ends]
    before = base.values[1][:, GRADIENTS]
    changed = [(end.values[0] != began) | (end.values[1][:, GRADIENTS] != before) for end in ends]
    count = np.add.reduce(changed, dtype=np.float32)
    moves = sum((weight - first) * has_changed for weight, has_changed in zip(weights, changed, strict=True))
    merged: NDArray[Any] = first + moves / np.maximum(count, np.float32(1))
    statistics[:, GRADIENTS] += sum(np.maximum(gradient - before, 0.0) for gradient in gradients)
    statistics[:, SCALE] = scale
    for weight, has_changed, gradient in zip(weights, changed, gradients, strict=True):
        alone = has_changed & (count == 1)  # taken over without rounding
        merged[alone] = weight[alone]
        if rule.adaptive:
            statistics[:, GRADIENTS][alone] = gradient[alone]
    return TableCells(base.rows, (np.asarray(merged, np.float32), statistics))


def _rescaled(
    weights: NDArray[np.float32], before: NDArray[np.float32], now: NDArray[np.float32], rule: Rule
) -> NDArray[np.float32]:
    """Return weights of features of scale `before` as an update rescales them if the scale grows to `now`."""
    grows = (now > before) & (before > 0.0)
    if not rule.normalized or not grows.any():
        return weights
    ratio = np.where(grows, now / np.where(grows, before, 1.0), 1.0)
    return np.asarray(weights * (ratio * ratio) ** np.float32(rule.norm_power), np.float32)


def _merge_screen(base: TableCells, ends: Sequence[TableCells]) -> TableCells:
    """Return the merged cells of screening: sums add up, and the largest value is the largest of all."""
    began = base.values[0]
    table = began + sum(end.values[0] - began for end in ends)
    table[:, 2] = np.maximum.reduce([end.values[0][:, 2] for end in ends])
    return TableCells(base.rows, (table.astype(np.float32),))
