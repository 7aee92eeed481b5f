"""Merge: one state from the ends of a round's chunks, which all continued from the same base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.cluster.partitions.state import (
    PlainStates,
    SentState,
    TableCells,
    arrays_to_send,
    load_dense,
    prefix_of,
    put_rows,
    rebuild_ensemble,
    records_of,
    records_of_ensemble,
    regressions_of,
    surest_path,
    tables_of,
    take_rows,
    whole_members,
)
from onlineauto.engine.ensemble.branches import mean_retention, merge_statistic, shares
from onlineauto.engine.ensemble.merge import merge_ensembles, merge_states
from onlineauto.engine.ensemble.regression import MERGED, STATISTICS
from onlineauto.engine.ensemble.states import states_of
from onlineauto.engine.records.search import Tally
from onlineauto.estimators.scale_kernels import FLOOR
from onlineauto.learners.gradient_kernels import GRADIENTS, SCALE
from onlineauto.state.schema import merge, rebuild

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.cluster.partitions.state import TableArrays
    from onlineauto.engine.ensemble.merge import Each, MergedPart
    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.learners.gradient_kernels import Rule
    from onlineauto.workspace.workspace import Workspace

    Arrays = dict[str, NDArray[Any]]
    Rows = dict[str, NDArray[np.int64]]


def merge_round(
    workspace: Workspace, ends: Sequence[SentState], part: MergedPart | None = None, each: Each = map
) -> SentState:
    """Return what merges of the ends of chunks, with the base of the workspace: of members only a `part`."""
    live = workspace.searching.live_configs.arrays
    floor = bool(live.statistics.scale[FLOOR] > 0.0)
    context = _Round(floor, float(live.tally[Tally.LEARNT]), _learnt(workspace, ends))
    merged = {
        prefix: merge(record, [rebuild(record, prefix, end.dense) for end in ends], context)
        for prefix, record in records_of(workspace).items()
    }
    dense, tables = arrays_to_send(merged), _merge_tables(workspace, ends)
    if live.ensemble.on:
        members = _Ensembles(workspace, ends, None)
        ensemble = merge_ensembles(
            members.base,
            members.branches,
            learnt=context.learnt,
            floor=floor,
            ordered=True,
            part=part,
            surest=members.surest,
            each=each,
        )
        of_members = members.state_of(ensemble)
        dense, tables = dense | of_members.dense, tables | of_members.tables
        if part is not None:
            tables |= _actions_of(ensemble, of_members.dense, part)
            for name in set(whole_members(ensemble)) - set(part.whole):
                dense = {path: array for path, array in dense.items() if not path.startswith(prefix_of(name))}
    return SentState(dense, tables)


def merge_share(workspace: Workspace, ends: Sequence[SentState], part: MergedPart) -> SentState:
    """Return what a server merges: its cells, its actions of regressions, as cells, and its members."""
    tables, dense = _merge_tables(workspace, ends), {}
    if part.members:
        members = _Ensembles(workspace, ends, part.members)
        inputs, states = merge_states(
            members.base, members.branches, ordered=True, part=part, surest=members.surest
        )
        base = members.base
        records: Any = PlainStates(states_of(base).members, tuple(states))
        merged = members.state_of(base._replace(members=base.members._replace(inputs=inputs, states=records)))
        tables |= merged.tables | _actions_of(base, merged.dense, part)
        prefixes = tuple(map(prefix_of, part.whole))
        dense = {path: array for path, array in merged.dense.items() if path.startswith(prefixes)}
    return SentState(dense, tables)


def _actions_of(ensemble: Ensemble, dense: Arrays, part: MergedPart) -> dict[str, TableCells]:
    """Return the merged actions of regressions, as cells."""
    result = {}
    for name, path in regressions_of(ensemble).items():
        if name not in part.members:
            continue
        arrays = [dense[f"{path}.{field}"] for field in MERGED]
        actions = np.array([each for each in part.actions[name] if each < len(arrays[-1])], np.int64)
        result[name] = TableCells(actions, tuple(array[actions] for array in arrays))
    return result


def join_shares(workspace: Workspace, shares: Sequence[SentState]) -> SentState:
    """Return what merges, from the shares of all servers; one of them has all small arrays."""
    dense: Arrays = {}
    tables: dict[str, list[TableCells]] = {}
    for share in shares:
        dense |= share.dense
        for name, cells in share.tables.items():
            tables.setdefault(name, []).append(cells)
    for name, path in regressions_of(workspace.searching.live_configs.arrays.ensemble).items():
        for cells in tables.pop(name, ()):
            for field, values in zip(MERGED, cells.values, strict=True):
                dense[f"{path}.{field}"][cells.rows] = values
    return SentState(dense, {name: _joined(parts) for name, parts in tables.items()})


def _joined(parts: Sequence[TableCells]) -> TableCells:
    return TableCells(
        np.concatenate([part.rows for part in parts]),
        tuple(np.concatenate(values) for values in zip(*(part.values for part in parts), strict=True)),
    )


def load_merged(workspace: Workspace, merged: SentState) -> None:
    """Write what has merged into the workspace, which holds the base."""
    load_dense(workspace, merged.dense)
    tables = tables_of(workspace)
    for name, part in merged.tables.items():
        put_rows(tables[name], part)
    workspace.learner.model.touched[merged.tables["model"].rows] = True


def _learnt(workspace: Workspace, ends: Sequence[SentState]) -> list[int]:
    """Return the number of events that each end has learnt."""
    seen = workspace.searching.live_configs.arrays.tally[Tally.LEARNT]
    return [int(end.dense["live.tally"][Tally.LEARNT] - seen) for end in ends]


def _merge_tables(workspace: Workspace, ends: Sequence[SentState]) -> dict[str, TableCells]:
    """Return the merged cells of the tables of live configs and of screening."""
    tables = tables_of(workspace)
    rows = {name: _changed(name, table, ends) for name, table in tables.items() if not table.paths}
    parts = {
        "model": merge_weights(
            take_rows(tables["model"], rows["model"]),
            _tables_of(ends, "model", rows, tables),
            workspace.learner.rule,
        )
    }
    if "screen" in tables:
        parts["screen"] = _merge_screen(
            take_rows(tables["screen"], rows["screen"]), _tables_of(ends, "screen", rows, tables)
        )
    return parts


class _Round(NamedTuple):
    """The context in which the search merges; see `Round`."""

    floor: bool
    seen: float  # events learnt before
    learnt: list[int]  # by each end

    def mean(self, base: Any, ends: Sequence[Any], memory: float) -> NDArray[np.float64]:
        """Return a mean of the latest `memory` events."""
        return merge_statistic(base, ends, shares(self.learnt, mean_retention(self.seen, memory)))


def _changed(name: str, table: TableArrays, ends: Sequence[SentState]) -> NDArray[np.int64]:
    """Return the sorted cells of a table that any end has changed."""
    changed = np.zeros(len(table.arrays[0]), np.bool_)
    for end in ends:
        if name in end.tables:
            changed[end.tables[name].rows] = True
    return np.flatnonzero(changed)


def _tables_of(ends: Sequence[SentState], name: str, rows: Rows, tables: Any) -> list[TableCells]:
    """Return the cells `rows` of each end: its own, and those of the base that it has not changed."""
    base = take_rows(tables[name], rows[name])
    result = []
    for end in ends:
        values = tuple(array.copy() for array in base.values)
        if name in end.tables:
            cells = end.tables[name]
            positions = np.searchsorted(rows[name], cells.rows)
            for target, source in zip(values, cells.values, strict=True):
                target[positions] = source
        result.append(TableCells(rows[name], values))
    return result


class _Ensembles:
    """The ensembles of the base and of the ends, whose tables have the cells that any end has changed."""

    def __init__(self, workspace: Workspace, ends: Sequence[SentState], of: Collection[str] | None) -> None:
        ensemble, tables = workspace.searching.live_configs.arrays.ensemble, tables_of(workspace)
        self._of = of
        self._tables = {
            name: table for name, table in tables.items() if table.paths and (of is None or name in of)
        }
        self._rows = {name: _changed(name, table, ends) for name, table in self._tables.items()}
        cells = {name: _tables_of(ends, name, self._rows, self._tables) for name in self._tables}
        own = {name: take_rows(table, self._rows[name]) for name, table in self._tables.items()}
        level = {"ensemble.test.level": ensemble.test.level}
        arrays = arrays_to_send(records_of_ensemble(ensemble, of))
        self.base = rebuild_ensemble(ensemble, arrays | self._arrays_of(own), of)
        self.branches = [
            rebuild_ensemble(
                ensemble,
                arrays  # of members that have not changed
                | _statistics(end, ensemble)
                | level
                | self._arrays_of({name: parts[number] for name, parts in cells.items()}),
                of,
            )
            for number, end in enumerate(ends)
        ]
        self.surest = {
            name: max(float(end.dense[surest_path(name)][0]) for end in ends)
            for name in self._tables
            if all(surest_path(name) in end.dense for end in ends)
        }

    def _arrays_of(self, parts: Mapping[str, TableCells]) -> Arrays:
        return {
            path: np.ascontiguousarray(values.T) if values.ndim > 1 else values
            for name, table in self._tables.items()
            for path, values in zip(table.paths, parts[name].values, strict=True)
        }

    def state_of(self, merged: Ensemble) -> SentState:
        """Return the small arrays of a merged ensemble, and the cells of its members."""
        result = arrays_to_send(records_of_ensemble(merged, self._of))
        cells = {
            name: TableCells(
                self._rows[name],
                tuple(array.T if array.ndim > 1 else array for array in map(result.pop, table.paths)),
            )
            for name, table in self._tables.items()
        }
        return SentState(result, cells)


def _statistics(end: SentState, ensemble: Ensemble) -> Arrays:
    """Return the small arrays of an end, with statistics of least squares only of its actions."""
    dense = dict(end.dense)
    for name, path in regressions_of(ensemble).items():
        if name in end.tables:
            rows, values = end.tables[name]
            for field, array in zip(STATISTICS, values, strict=True):
                whole = np.zeros((len(dense[f"{path}.begun"]), *array.shape[1:]))
                whole[rows] = array
                dense[f"{path}.{field}"] = whole
    return dense


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
