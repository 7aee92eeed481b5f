"""The state that learning changes, as plain arrays by name: how it is read, copied and sent.

Tables are large and change in few cells, so only the changed cells are part of a `SentState`. All other
arrays are small: their used part is copied in full.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray  # noqa: TC002

from onlineauto.engine.ensemble.least_squares_kernels import Regression
from onlineauto.engine.ensemble.regression import Settled, settle
from onlineauto.engine.ensemble.states import states_of
from onlineauto.learners.gradient_kernels import GRADIENTS, SCALE
from onlineauto.learners.tree_records import Fit
from onlineauto.state.schema import rebuild, receive, send

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from onlineauto.engine.records.ensemble import Ensemble
    from onlineauto.workspace.workspace import Workspace

    Arrays = dict[str, NDArray[Any]]

ENSEMBLE = "ensemble"


class TableCells(NamedTuple):
    """Changed cells of a table: their indices, and their numbers in each of its arrays.

    In a message of or to a merge server, also actions of a member that is a regression, and their statistics.
    """

    rows: NDArray[np.int64]
    values: tuple[NDArray[Any], ...]


class SentState(NamedTuple):
    """The used part of all small arrays, and the changed cells of tables."""

    dense: dict[str, NDArray[Any]]
    tables: dict[str, TableCells]


class PlainStates(NamedTuple):
    """The states of members that are merged, not learnt: they need no addresses for kernels."""

    members: tuple[Any, ...]
    records: tuple[Any, ...]


def records_of(workspace: Workspace) -> dict[str, Any]:
    """Return the records that learning changes, but not the ensemble's, by the prefix of their arrays."""
    learner, searching = workspace.learner, workspace.searching
    return {
        "model": learner.model,
        "explorer": learner.task.exploration,
        "live": searching.live_configs.arrays,
        "screen": searching.screening.screen,
    }


def records_of_ensemble(ensemble: Ensemble, of: Collection[str] | None = None) -> dict[str, Any]:
    """Return the records of an ensemble that learning changes, by the prefix of their arrays.

    `of` names members; None for all.
    """
    if not ensemble.on:
        return {}
    states = states_of(ensemble)
    members = zip(states.members, states.records, strict=True)
    return {ENSEMBLE: ensemble, f"{ENSEMBLE}.members": ensemble.members} | {
        f"{ENSEMBLE}.members.{member.name}": state
        for member, state in members
        if of is None or member.name in of
    }


def _records(workspace: Workspace) -> dict[str, Any]:
    return records_of(workspace) | records_of_ensemble(workspace.searching.live_configs.arrays.ensemble)


def arrays_to_send(records: Mapping[str, Any]) -> Arrays:
    """Return the used part of the arrays of records that merge, by path."""
    return {path: array for prefix, record in records.items() for path, array in send(record, prefix).items()}


def rebuild_ensemble(
    ensemble: Ensemble, arrays: Mapping[str, NDArray[Any]], of: Collection[str] | None = None
) -> Ensemble:
    """Return an ensemble with such arrays in place of its own; others are shared.

    A regression whose statistics are among the arrays becomes `Settled`. `of` names the members that have
    arrays; None for all.
    """
    changed = {
        prefix: _settled(rebuild(record, prefix, arrays), prefix, arrays)
        for prefix, record in records_of_ensemble(ensemble, of).items()
    }
    whole, members = itertools.islice(changed.values(), 2)
    states = tuple(
        changed.get(prefix, record) for prefix, record in [*records_of_ensemble(ensemble).items()][2:]
    )
    plain = PlainStates(states_of(ensemble).members, states)
    return whole._replace(members=members._replace(states=plain))  # type: ignore[no-any-return]


def _settled(state: Any, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Any:
    """Return a state whose regressions are settled, if the arrays have their statistics."""
    for path, _ in _regressions(state, prefix):
        if f"{path}.{Settled._fields[0]}" in arrays:
            settled = Settled(*(arrays[f"{path}.{name}"] for name in Settled._fields))
            state = settled if path == prefix else state._replace(**{path.rpartition(".")[2]: settled})
    return state


def dense_arrays(workspace: Workspace) -> Arrays:
    """Return the small arrays that learning changes, in use, by path."""
    arrays = arrays_to_send(_records(workspace))
    for table in tables_of(workspace).values():
        for path in table.paths:
            del arrays[path]
    return arrays


def settled_arrays(workspace: Workspace, base: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return copies of the small arrays, but of regressions the statistics of least squares.

    Members whose arrays are those of the base are left out, like most that rest.
    """
    arrays = dense_arrays(workspace)
    settled: Arrays = {}
    ensemble = workspace.searching.live_configs.arrays.ensemble
    members = states_of(ensemble).members if ensemble.on else ()
    states = list(records_of_ensemble(ensemble).items())[2:]
    for member, (prefix, state) in zip(members, states, strict=True):
        paths = [path for path in arrays if path.startswith(f"{prefix}.")]
        if all(path in base and np.array_equal(arrays[path], base[path]) for path in paths):
            for path in paths:
                del arrays[path]
            continue
        if member.least_squares is None:
            continue
        for path, record in _regressions(state, prefix):
            for name in send(record, path):
                del arrays[name]
            statistics = settle(record, *member.least_squares)
            settled |= {f"{path}.{name}": array for name, array in statistics._asdict().items()}
    return {name: array.copy() for name, array in arrays.items()} | settled


class TableArrays(NamedTuple):
    """The arrays of a table, with the cell as the first axis; of a member, also their paths."""

    arrays: tuple[NDArray[np.float32], ...]
    paths: tuple[str, ...] = ()


def tables_of(workspace: Workspace) -> dict[str, TableArrays]:
    """Return the tables by name: the weights of live configs, cells of members, cells of screening."""
    model, searching = workspace.learner.model, workspace.searching
    tables = {"model": TableArrays((model.weights, model.statistics))}
    if len(searching.screening.screen.table) > 1:
        tables["screen"] = TableArrays((searching.screening.screen.table,))
    ensemble = searching.live_configs.arrays.ensemble
    if ensemble.on:
        states = states_of(ensemble)
        for member, state in zip(states.members, states.records, strict=True):
            if names := member.cells:
                arrays = (getattr(state, name) for name in names)
                paths = tuple(f"{ENSEMBLE}.members.{member.name}.{name}" for name in names)
                by_cell = tuple(array.T if array.ndim > 1 else array for array in arrays)
                tables[member.name] = TableArrays(by_cell, paths)
    return tables


def take_rows(table: TableArrays, rows: NDArray[np.int64]) -> TableCells:
    """Return a copy of cells."""
    return TableCells(rows, tuple(_entries(array, rows) for array in table.arrays))


def _entries(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return a copy of rows of an array; `take` is several times as fast as an index."""
    if array.flags.c_contiguous:
        return array.take(rows, axis=0)
    return array.T.take(rows, axis=-1).T


def put_rows(table: TableArrays, part: TableCells) -> None:
    """Write cells into a table."""
    for array, values in zip(table.arrays, part.values, strict=True):
        if array.flags.c_contiguous:
            array[part.rows] = values
            continue
        for plane, numbers in zip(array.T, values.T, strict=True):
            plane[part.rows] = numbers


class TrackedTables:
    """The tables of a workspace, and those of the base: of a `coordinator` in this process, or copies."""

    def __init__(self, workspace: Workspace, coordinator: Workspace | None = None) -> None:
        self._workspace, self._coordinator = workspace, coordinator
        self._copies: dict[str, tuple[NDArray[np.float32], ...]] = {
            name: tuple(array.copy(order="K") for array in table.arrays)
            for name, table in tables_of(workspace).items()
            if coordinator is None
        }

    @property
    def _base(self) -> dict[str, tuple[NDArray[np.float32], ...]]:
        """The arrays of the tables at the base."""
        if self._coordinator is None:
            return self._copies
        return {name: table.arrays for name, table in tables_of(self._coordinator).items()}

    def tables(self) -> dict[str, TableArrays]:
        """Return the tables. One that is new was 0 at the base."""
        tables = tables_of(self._workspace)
        for name, table in tables.items():
            if self._coordinator is None and name not in self._copies:
                self._copies[name] = tuple(np.zeros_like(array) for array in table.arrays)
        return tables

    def changed(self, unchanged: Collection[str] = ()) -> dict[str, NDArray[np.int64]]:
        """Return the cells of each table that differ from the base; tables known to be `unchanged` do not."""
        return {
            name: np.zeros(0, np.int64) if name in unchanged else self._changed(name, table)
            for name, table in self.tables().items()
        }

    def _changed(self, name: str, table: TableArrays) -> NDArray[np.int64]:
        base = self._base[name]
        if name == "model":
            rows = np.flatnonzero(self._workspace.learner.model.touched)
            now, before = take_rows(table, rows).values, take_rows(TableArrays(base), rows).values
            pairs = [(now[0], before[0])]
            pairs += [(now[1][:, field], before[1][:, field]) for field in (GRADIENTS, SCALE)]
            return rows[_differ(pairs)]
        return np.flatnonzero(_differ(list(zip(table.arrays, base, strict=True))))

    def differences(self, fresh: TrackedTables) -> dict[str, NDArray[np.int64]]:
        """Return the cells of each table that differ from those of a new workspace."""
        others, tables = fresh.tables(), self.tables()
        rows = {}
        for name, table in tables.items():
            arrays = (
                others[name].arrays if name in others else [np.zeros_like(array) for array in table.arrays]
            )
            rows[name] = np.flatnonzero(_differ(list(zip(table.arrays, arrays, strict=True))))
        return rows

    def rebase(self, name: str, part: TableCells) -> None:
        """Put cells of a new base into a table and its copy."""
        put_rows(self.tables()[name], part)
        for array, values in zip(self._base[name], part.values, strict=True):
            array[part.rows] = values
        if name == "model":
            self._workspace.learner.model.touched[part.rows] = True

    def copy_coordinator(self) -> None:
        """Copy the tables of the coordinator, but of weights only the features that either has learnt."""
        assert self._coordinator is not None
        base, touched = self._base, self._workspace.learner.model.touched
        touched |= self._coordinator.learner.model.touched
        for name, table in self.tables().items():
            if name == "model":
                put_rows(table, take_rows(TableArrays(base[name]), np.flatnonzero(touched)))
                continue
            for array, values in zip(table.arrays, base[name], strict=True):
                array[:] = values

    def surest(self, changed: Mapping[str, TableCells]) -> Arrays:
        """Return the largest precision of changed cells, at the base and now, of each member, by path."""
        ensemble, result = self._workspace.searching.live_configs.arrays.ensemble, {}
        for member in states_of(ensemble).members if ensemble.on else ():
            if member.cells:
                cells, spread = changed[member.name], member.cells.index("spread")
                before = self._base[member.name][spread][cells.rows]
                result[surest_path(member.name)] = np.array([member.surest(before, cells.values[spread])])
        return result

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
        flat, before = (np.ascontiguousarray(array).reshape(-1).view(np.uint32) for array in (new, old))
        changed[np.flatnonzero(flat != before) // max(len(flat) // max(len(new), 1), 1)] = True
    return changed


def _regressions(state: Any, prefix: str) -> Iterator[tuple[str, Regression]]:
    """Yield the path and the regression of each regression that a member's state is or has."""
    if isinstance(state, Regression):
        yield prefix, state
        return
    for name, value in zip(state._fields, state, strict=True):
        if isinstance(value, Regression):
            yield f"{prefix}.{name}", value


def regressions_of(ensemble: Ensemble) -> dict[str, str]:
    """Return the path of the regression of each member that has one, by the member's name."""
    if not ensemble.on:
        return {}
    states = list(records_of_ensemble(ensemble).items())[2:]
    return {
        member.name: next(_regressions(state, prefix))[0]
        for member, (prefix, state) in zip(states_of(ensemble).members, states, strict=True)
        if member.least_squares is not None
    }


def resting_members(ensemble: Ensemble) -> list[str]:
    """Return the names of members of which all scores rest, so that no event is learnt."""
    members = states_of(ensemble).members if ensemble.on else ()
    spans = itertools.pairwise(ensemble.members.begins.tolist())
    return [
        member.name
        for member, (begin, end) in zip(members, spans, strict=True)
        if ensemble.members.rests[begin:end].all()
    ]


def whole_members(ensemble: Ensemble) -> list[str]:
    """Return the names of members that have neither a table nor a regression."""
    members = states_of(ensemble).members if ensemble.on else ()
    return [member.name for member in members if not member.cells and member.least_squares is None]


def prefix_of(member: str) -> str:
    """Return the prefix of the paths of a member's arrays."""
    return f"{ENSEMBLE}.members.{member}."


def surest_path(name: str) -> str:
    """Return the path, in the state of an end, of the largest precision of a member's changed cells."""
    return f"{ENSEMBLE}.members.{name}.surest"


def load_dense(workspace: Workspace, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Copy small arrays into a workspace; what was used beyond their shape is cleared first."""
    for prefix, record in _records(workspace).items():
        receive(record, prefix, arrays)
        for value in record:
            if isinstance(value, Fit):  # the rows to fit have changed
                value.prepared[0] = -1
