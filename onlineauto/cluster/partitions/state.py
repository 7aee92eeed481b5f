"""The state that learning changes, as plain arrays by name: how it is read, copied and sent.

Tables are large and change in few cells, so only the changed cells are part of a `State`. All other arrays
are small: their used part is copied in full.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.engine.ensemble.least_squares_kernels import Regression
from onlineauto.engine.ensemble.regression import Settled, settle
from onlineauto.engine.ensemble.regression_kernels import Prepared
from onlineauto.engine.ensemble.states import MemberStates
from onlineauto.engine.ensemble.wave_kernels import Basis
from onlineauto.engine.records.ensemble import MOST_ACTIONS
from onlineauto.explorers.exploration import EXPLORER_STATE
from onlineauto.learners.gradient_kernels import GRADIENTS, SCALE
from onlineauto.learners.tree_records import Fit, Trees
from onlineauto.state.schema import send

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.workspace.workspace import Workspace

    Arrays = dict[str, NDArray[Any]]

ENSEMBLE = "ensemble"
_OF_MODEL = ("shared", "lanes", "sums", "settings", "sizes", "outliers")
_NOT_SENT = {"scratch", "sorted", "gains", "needs", "begins"}
_AXES = {
    "weights": (0, 1),
    "spread": (0, 1, 1),
    "late": (0, 2, 1),
    "n_late": (0,),
    "scale": (0,),
    "waiting": (0, 2, 1),
    "observed": (0, 2, 2),
    "n_waiting": (0,),
    "begun": (0,),
    "prepared": (2,),
}
"""Axes of a regression's arrays: 0 for actions, 1 for inputs, 2 for all."""
_TREES_AXES = {"input": (2, 0), "value": (2, 0), "leaf": (2, 2, 2, 1)}
"""Axes of large arrays of trees: 0 for inputs of a row, 1 for outputs, 2 for all."""


class Table(NamedTuple):
    """Changed cells of a table: their indices, and their numbers in each of its arrays."""

    rows: NDArray[np.int64]
    values: tuple[NDArray[np.float32], ...]


class State(NamedTuple):
    """The used part of all small arrays, and the changed cells of tables."""

    dense: Arrays
    tables: dict[str, Table]


def flatten(record: Any, prefix: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the arrays of a record and of the records in it, by path; of the largest the used part."""
    if isinstance(record, Regression):
        known = int(record.prepared[Prepared.ACTIONS])
        ends = 1 if known > MOST_ACTIONS else known, int(record.prepared[Prepared.INPUTS])
        for name, axes in _AXES.items():
            yield f"{prefix}.{name}", _corner(getattr(record, name), axes, ends)
        return
    if isinstance(record, Trees):
        ends = int(record.length.max(initial=0)), int(record.outputs.max())
        for name in record._fields:
            array = getattr(record, name)
            yield f"{prefix}.{name}", _corner(array, _TREES_AXES.get(name, ()), ends)
        return
    for name, value in zip(record._fields, record, strict=True):
        if isinstance(value, MemberStates | PlainStates):
            for member, state in zip(value.members, value.records, strict=True):
                yield from flatten(state, f"{prefix}.{member.name}")
        elif name in _NOT_SENT or isinstance(value, Basis | Fit):
            continue
        elif isinstance(value, np.ndarray):
            yield f"{prefix}.{name}", value
        elif isinstance(value, tuple):
            yield from flatten(value, f"{prefix}.{name}")


def _corner(array: NDArray[Any], axes: Sequence[int], ends: tuple[int, int]) -> NDArray[Any]:
    """Return the part of an array that is used, given the ends of axes 0 and 1."""
    return array[tuple(slice(ends[axis]) if axis < 2 else slice(None) for axis in axes)]


def rebuild(record: Any, arrays: Mapping[str, NDArray[Any]], prefix: str) -> Any:
    """Return a record with the arrays of `flatten` in place of its own; others are shared.

    A regression whose statistics are among the arrays becomes `Settled`.
    """
    if isinstance(record, Regression) and f"{prefix}.{Settled._fields[0]}" in arrays:
        return Settled(*(arrays[f"{prefix}.{name}"] for name in Settled._fields))
    fields: dict[str, Any] = {}
    for name, value in zip(record._fields, record, strict=True):
        path = f"{prefix}.{name}"
        if isinstance(value, MemberStates):
            states = (
                rebuild(state, arrays, f"{prefix}.{member.name}")
                for member, state in zip(value.members, value.records, strict=True)
            )
            fields[name] = PlainStates(value.members, tuple(states))
        elif path in arrays:
            fields[name] = arrays[path]
        elif isinstance(value, tuple) and hasattr(value, "_fields"):
            fields[name] = rebuild(value, arrays, path)
    return record._replace(**fields)


class PlainStates(NamedTuple):
    """The states of members that are merged, not learnt: they need no addresses for kernels."""

    members: tuple[Any, ...]
    records: tuple[Any, ...]


def dense_arrays(workspace: Workspace) -> Arrays:
    """Return the small arrays that learning changes, in use, by name; of regressions the used part."""
    learner, searching = workspace.learner, workspace.searching
    model, exploration, live = learner.model, learner.task.exploration, searching.live_configs.arrays
    arrays: Arrays = {f"model.{name}": getattr(model, name) for name in _OF_MODEL}
    arrays |= {f"explorer.{name}": getattr(exploration, name) for name in EXPLORER_STATE}
    arrays |= send(live, "live")
    arrays["screen.seen"] = searching.screening.screen.seen
    if live.ensemble.on:
        tables = tables_of(workspace)
        taken = {id(each) for name in tables for each in tables[name].owners}
        arrays |= {path: array for path, array in flatten(live.ensemble, ENSEMBLE) if id(array) not in taken}
    return arrays


def settled_arrays(workspace: Workspace) -> Arrays:
    """Return copies of the small arrays, but of regressions the statistics of least squares."""
    arrays = dense_arrays(workspace)
    ensemble: Ensemble = workspace.searching.live_configs.arrays.ensemble
    settled: Arrays = {}
    if ensemble.on:
        states: Any = ensemble.members.states
        for member, state in zip(states.members, states.records, strict=True):
            for path, record in _partly_used(state, f"{ENSEMBLE}.members.{member.name}"):
                if isinstance(record, Regression) and member.least_squares is not None:
                    for name in _AXES:
                        del arrays[f"{path}.{name}"]
                    statistics = settle(record, *member.least_squares)
                    settled |= {f"{path}.{name}": each for name, each in statistics._asdict().items()}
    return {name: array.copy() for name, array in arrays.items()} | settled


class TableArrays(NamedTuple):
    """The arrays of a table, with the cell as the first axis; and the arrays that they are views of."""

    arrays: tuple[NDArray[np.float32], ...]
    owners: tuple[NDArray[np.float32], ...] = ()
    paths: tuple[str, ...] = ()


def tables_of(workspace: Workspace) -> dict[str, TableArrays]:
    """Return the tables by name: the weights of live configs, cells of members, cells of screening."""
    model, searching = workspace.learner.model, workspace.searching
    tables = {"model": TableArrays((model.weights, model.statistics))}
    if len(searching.screening.screen.table) > 1:
        tables["screen"] = TableArrays((searching.screening.screen.table,))
    ensemble = searching.live_configs.arrays.ensemble
    if ensemble.on:
        states: Any = ensemble.members.states
        for member, state in zip(states.members, states.records, strict=True):
            if names := member.cells:
                owners = tuple(getattr(state, name) for name in names)
                paths = tuple(f"{ENSEMBLE}.members.{member.name}.{name}" for name in names)
                arrays = tuple(each.T if each.ndim > 1 else each for each in owners)
                tables[member.name] = TableArrays(arrays, owners, paths)
    return tables


def take_rows(table: TableArrays, rows: NDArray[np.int64]) -> Table:
    """Return a copy of cells."""
    return Table(rows, tuple(array[rows] for array in table.arrays))


def put_rows(table: TableArrays, part: Table) -> None:
    """Write cells into a table."""
    for array, values in zip(table.arrays, part.values, strict=True):
        array[part.rows] = values


class TrackedTables:
    """The tables of a workspace, with copies of them as they were at the base."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._base: dict[str, tuple[NDArray[np.float32], ...]] = {
            name: tuple(array.copy(order="K") for array in table.arrays)
            for name, table in tables_of(workspace).items()
        }

    def tables(self) -> dict[str, TableArrays]:
        """Return the tables. One that is new was 0 at the base."""
        tables = tables_of(self._workspace)
        for name, table in tables.items():
            if name not in self._base:
                self._base[name] = tuple(np.zeros_like(array) for array in table.arrays)
        return tables

    def changed(self) -> dict[str, NDArray[np.int64]]:
        """Return the cells of each table that differ from the base."""
        return {name: self._changed(name, table) for name, table in self.tables().items()}

    def _changed(self, name: str, table: TableArrays) -> NDArray[np.int64]:
        base = self._base[name]
        if name == "model":
            rows = np.flatnonzero(self._workspace.learner.model.touched)
            weights, statistics = table.arrays
            pairs = [(weights[rows], base[0][rows])]
            pairs += [(statistics[rows, field], base[1][rows, field]) for field in (GRADIENTS, SCALE)]
            return rows[_differ(pairs)]
        return np.flatnonzero(_differ(list(zip(table.arrays, base, strict=True))))

    def differences(self, fresh: TrackedTables) -> dict[str, NDArray[np.int64]]:
        """Return the cells of each table that differ from those of a new workspace."""
        others, tables = fresh.tables(), self.tables()
        rows = {}
        for name, table in tables.items():
            arrays = others[name].arrays if name in others else [np.zeros_like(each) for each in table.arrays]
            rows[name] = np.flatnonzero(_differ(list(zip(table.arrays, arrays, strict=True))))
        return rows

    def rebase(self, name: str, part: Table) -> None:
        """Put cells of a new base into a table and its copy."""
        put_rows(self.tables()[name], part)
        for array, values in zip(self._base[name], part.values, strict=True):
            array[part.rows] = values
        if name == "model":
            self._workspace.learner.model.touched[part.rows] = True

    def reset(self, changed: Mapping[str, NDArray[np.int64]]) -> None:
        """Return changed cells to the base."""
        for name, table in self.tables().items():
            if name in changed:
                put_rows(table, take_rows(TableArrays(self._base[name]), changed[name]))


def _differ(pairs: Sequence[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> NDArray[np.bool_]:
    """Return for each cell whether one of its numbers differs, in bits, in a pair of arrays."""
    changed = np.zeros(len(pairs[0][0]), np.bool_)
    for new, old in pairs:
        if new.ndim == 2 and new.strides[0] < new.strides[1]:  # a transposed table, plane by plane
            for plane, before in zip(new.T, old.T, strict=True):
                changed |= plane.view(np.uint32) != before.view(np.uint32)
            continue
        flat, before = (np.ascontiguousarray(each).reshape(-1).view(np.uint32) for each in (new, old))
        changed[np.flatnonzero(flat != before) // max(len(flat) // max(len(new), 1), 1)] = True
    return changed


def full_arrays(workspace: Workspace) -> Arrays:
    """Return the small arrays in full, including their unused parts."""
    arrays = dense_arrays(workspace)
    ensemble: Ensemble = workspace.searching.live_configs.arrays.ensemble
    if not ensemble.on:
        return arrays
    states: Any = ensemble.members.states
    for member, state in zip(states.members, states.records, strict=True):
        for path, record in _partly_used(state, f"{ENSEMBLE}.members.{member.name}"):
            names = _AXES if isinstance(record, Regression) else _TREES_AXES
            arrays |= {f"{path}.{name}": getattr(record, name) for name in names}
    return arrays


def _partly_used(state: Any, prefix: str) -> Iterator[tuple[str, Regression | Trees]]:
    if isinstance(state, Regression):
        yield prefix, state
        return
    for name, value in zip(state._fields, state, strict=True):
        if isinstance(value, Regression | Trees):
            yield f"{prefix}.{name}", value


def load_dense(workspace: Workspace, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy small arrays into a workspace; what was used beyond their shape is cleared first."""
    targets, used = full_arrays(workspace), dense_arrays(workspace)
    _forget_fits(workspace)
    for path, array in arrays.items():
        target = targets[path]
        if target.shape == array.shape:
            target[...] = array
            continue
        if any(now > new for now, new in zip(used[path].shape, array.shape, strict=True)):
            used[path][...] = 1 if path.endswith(".scale") else 0
        target[tuple(map(slice, array.shape))] = array


def _forget_fits(workspace: Workspace) -> None:
    """Mark the memory of fits as not prepared, because the rows to fit are about to change."""
    ensemble: Ensemble = workspace.searching.live_configs.arrays.ensemble
    if ensemble.on:
        states: Any = ensemble.members.states
        for state in states.records:
            for value in state:
                if isinstance(value, Fit):
                    value.prepared[0] = -1
