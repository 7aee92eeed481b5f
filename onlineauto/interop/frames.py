"""``from_frame``: frames of pandas, polars and arrow as Blocks, through narwhals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.lines.diagnostics import ProblemCode
from onlineauto.formats.mappings.identities import identity, named, numbers_in, spelling
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import spans_of
from onlineauto.interop.frame_columns import Columns
from onlineauto.interop.log_columns import check_logs, check_weights, label_column
from onlineauto.interop.rows import Labels, Rows, assemble

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from onlineauto.features.block import Block
    from onlineauto.formats.lines.diagnostics import Diagnostics

Names = Sequence[str] | Mapping[str, Sequence[str]]
"""Columns, each a separate namespace, or a mapping of namespace to columns."""


def from_frame(
    frame: Any,
    *,
    context: Names | None = None,
    actions: str | Names | None = None,
    event: str | None = None,
    choices: Sequence[Any] | Mapping[Any, Mapping[str, Any]] | None = None,
    cost: str | None = None,
    reward: str | None = None,
    probability: str | None = None,
    label: str | None = None,
    weight: str | None = None,
    problems: Diagnostics | None = None,
    events_per_block: int = 4096,
    hash: str = "strings",  # noqa: A002 - the option's name
    hash_seed: int = 0,
    name_columns: Iterable[str] = (),
) -> Iterator[Block]:
    """Yield blocks of events from the rows of a frame.

    There are three kinds of rows:

    * **events**: `actions` is the column of the logged action, and `choices` are all actions;
    * **actions**: consecutive rows with the same value in the column `event` are one event, and `actions` are
      the columns that describe an action; only the row of the logged action has a cost;
    * **single lines**, without `actions`: `label`.

    A column of numbers gives a feature with the column's name. A column of strings or categories gives a
    feature ``column=value``; so does the column of the action taken, whatever its type. True is 1. Null, NaN,
    False and 0 give no feature. A list or a struct is a namespace with the name of its column, as in
    `from_dicts`.

    Parameters
    ----------
    frame : DataFrame of pandas or polars, Table of pyarrow, or any other that narwhals supports
    context : list of columns, or dict of namespace to columns
        Features of the context; each column of a list is a separate namespace. By default these are all
        columns without another role. If rows are actions, the first row of an event counts.
    actions, event : see above
        A column, a list of columns, or a dict of namespace to columns; a column.
    choices : list, or dict of choice to features, optional
        All valid actions in order, by default all values of the column, sorted. A dict has their features, as
        for `from_dicts`.
    cost, probability : column, optional
        Cost and propensity of the logged action. Rows that lack one of the two or the action have no label.
    reward : column, optional
        In place of `cost`, its negative.
    label, weight : column, optional
        Label of single lines, null for a row without a label; number of such events that each row represents.
        If rows are actions, the first row's weight counts.
    problems : Diagnostics, optional
        Counts and locates events without a label.
    events_per_block : int
        Number of events in each block.
    hash, hash_seed : str, int
        The options of the workspace that will use the blocks.
    name_columns : iterable of str
        Columns whose numbers are names, as ``namespace^column``; `Workspace.identities` has those of a model.

    Raises
    ------
    PackageError
        If narwhals is not installed: ``pip install '.[frames]'``.
    InputError
        If a column is missing or cannot be a feature, or a row is invalid.

    Examples
    --------
    >>> import polars
    >>> from onlineauto import Workspace
    >>> frame = polars.DataFrame(
    ...     {"user": ["tom", "ann"], "arm": ["a", "b"], "cost": [-1, 0], "p": [0.5, 0.5]}
    ... )
    >>> [block] = from_frame(frame, context=["user"], actions="arm", cost="cost", probability="p")
    >>> len(block), block.n_lines, block.namespaces.names
    (2, 6, [b'user', b'arm'])
    """
    columns = Columns(frame, NameHashes(hash=hash, hash_seed=hash_seed), name_columns)
    if cost is not None and reward is not None:
        raise InputError("give either cost or reward, not both")
    logs = _Logs(cost if reward is None else reward, probability, rewards=reward is not None)
    if (logs.cost is None) != (probability is None):
        raise InputError("cost and probability go together: where one is logged, the other is")
    _check_kind(actions, {"event": event, "choices": choices, "cost": logs.cost, "label": label})
    weights = None if weight is None else check_weights(columns.numbers(weight))
    if context is None:
        taken = {event, logs.cost, probability, label, weight, *_columns_of(actions)}
        context = [name for name in columns.all_names if name not in taken]
    groups = _by_namespace(context)
    shared, size = columns.rows(groups), events_per_block
    if actions is None:
        columns.names.of_columns(columns.identities, columns.number_columns)
        return _single_lines(columns, shared, label=label, weights=weights, size=size)
    if event is None:
        columns.identities.add(identity(actions, actions))
        return _rows_are_events(
            columns,
            shared,
            action_column=str(actions),
            choices=choices,
            logs=logs,
            weights=weights,
            problems=problems,
            size=size,
        )
    action_rows = columns.rows(_by_namespace([actions] if isinstance(actions, str) else actions))
    columns.names.of_columns(columns.identities, columns.number_columns)
    return _rows_are_actions(
        columns, shared, action_rows, event=event, logs=logs, weights=weights, problems=problems, size=size
    )


class _Logs(NamedTuple):
    """The columns of the logged decisions."""

    cost: str | None
    probability: str | None
    rewards: bool


def _check_kind(actions: object, arguments: dict[str, object]) -> None:
    """Reject parameters that do not apply to the kind of rows that `actions` implies."""
    refused, reason = ["label"], "is for frames without actions"
    if actions is None:
        refused, reason = ["event", "choices", "cost"], "is for frames with actions"
    elif arguments["event"] is not None and arguments["choices"] is not None:
        refused, reason = ["choices"], "is for frames whose rows are events"
    elif arguments["event"] is None and not isinstance(actions, str):
        raise InputError(
            "rows are events if actions is one column, of the action taken; for rows that are actions, "
            "event names a column"
        )
    for name in refused:
        if arguments[name] is not None:
            raise InputError(f"{name} {reason}")


def _columns_of(names: str | Names | None) -> list[str]:
    if names is None or isinstance(names, str):
        return [names] if names else []
    groups = names.values() if isinstance(names, Mapping) else [names]
    return [column for group in groups for column in group]


def _by_namespace(names: Names) -> dict[str, list[str]]:
    if isinstance(names, Mapping):
        return {str(namespace): list(columns) for namespace, columns in names.items()}
    if isinstance(names, str):
        raise InputError(f"context must be a list of columns or a dict of lists, not {names!r}: [{names!r}]")
    return {name: [name] for name in names}


def _single_lines(
    columns: Columns,
    shared: list[Rows],
    *,
    label: str | None,
    weights: NDArray[np.float32] | None,
    size: int,
) -> Iterator[Block]:
    n = len(columns)
    labels = None if label is None else label_column(columns.numbers(label), label)
    for begin in range(0, n, size):
        rows = np.arange(begin, min(begin + size, n))
        yield assemble(
            [(each, rows) for each in shared],
            event_start=np.arange(len(rows) + 1),
            row=rows,
            names=columns.names,
            label=None if labels is None else labels[rows],
            weight=None if weights is None else weights[rows],
        )


def _rows_are_events(
    columns: Columns,
    shared: list[Rows],
    *,
    action_column: str,
    choices: Sequence[Any] | Mapping[Any, Mapping[str, Any]] | None,
    logs: _Logs,
    weights: NDArray[np.float32] | None,
    problems: Diagnostics | None,
    size: int,
) -> Iterator[Block]:
    needed = logs.cost is not None
    index, valid = columns.indices_of(
        action_column, None if choices is None else list(choices), needed=needed
    )
    if isinstance(choices, Mapping):
        features = [named(choices[each], frozenset(columns.identities)) for each in valid]
    else:
        features = [{action_column: str(spelling(each))} for each in valid]
    columns.names.of_columns(columns.identities, columns.number_columns.union(*map(numbers_in, features)))
    choice_rows = _rows_of_choices(features, columns.names)
    n, k = len(columns), len(valid)
    logged, costs, probabilities = _logged_rows(columns, logs, index >= 0)
    if problems is not None:
        _add_missing(problems, columns, (*logs[:2], action_column), np.setdiff1d(np.arange(n), logged))
    has_shared = int(bool(shared))
    lines = k + has_shared
    for begin in range(0, n, size):
        m = min(size, n - begin)
        row, action = np.repeat(np.arange(begin, begin + m), lines), np.tile(np.arange(lines) - has_shared, m)
        here = (logged >= begin) & (logged < begin + m)
        at = logged[here] - begin
        yield assemble(
            [(each, np.where(action < 0, row, -1)) for each in shared]
            + [(each, action) for each in choice_rows],
            event_start=np.arange(m + 1) * lines,
            row=row,
            names=columns.names,
            shared=action < 0,
            weight=None if weights is None else weights[row],
            labels=Labels(
                line=at * lines + has_shared + index[logged[here]],
                cost=costs[here],
                probability=probabilities[here],
            ),
        )


def _rows_of_choices(features: Sequence[Mapping[str, Any]], names: NameHashes) -> list[Rows]:
    """Return the rows of each namespace of the choices, one row for each choice."""
    spans = [dict(spans_of(each, f"choice {i}")) for i, each in enumerate(features)]
    rows = []
    for namespace in dict.fromkeys(name for each in spans for name in each):
        number = names.namespace(namespace)
        features_of = [each.get(namespace, ()) for each in spans]
        flat = [pair for each in features_of for pair in each]
        rows.append(
            Rows(
                namespace=number,
                start=np.concatenate([[0], np.cumsum([len(each) for each in features_of])]).astype(np.int64),
                hash=names.features([name for name, _ in flat], number),
                value=np.array([value for _, value in flat], np.float32),
            )
        )
    return rows


def _rows_are_actions(
    columns: Columns,
    shared: list[Rows],
    own: list[Rows],
    *,
    event: str,
    logs: _Logs,
    weights: NDArray[np.float32] | None,
    problems: Diagnostics | None,
    size: int,
) -> Iterator[Block]:
    first = columns.first_rows(event)
    n_events, has_shared = len(first) - 1, int(bool(shared))
    logged, costs, probabilities = _logged_rows(columns, logs, np.ones(len(columns), bool))
    of_event = np.searchsorted(first, logged, side="right") - 1
    if (np.diff(of_event) == 0).any():
        second = int(logged[1:][np.diff(of_event) == 0][0])
        raise InputError(
            f"row {second}: a second cost of the same event: only the chosen action can have a cost"
        )
    if problems is not None:
        unknown = np.setdiff1d(np.arange(n_events), of_event)
        _add_missing(problems, columns, logs[:2], first[unknown])
    for begin in range(0, n_events, size):
        end = min(begin + size, n_events)
        bounds = first[begin : end + 1]
        starts = bounds - bounds[0] + has_shared * np.arange(end - begin + 1)
        row, of_shared = np.full((2, int(starts[-1])), -1, np.int64)
        if has_shared:
            of_shared[starts[:-1]] = bounds[:-1]
        is_action = of_shared < 0
        row[is_action] = np.arange(bounds[0], bounds[-1])
        here = (of_event >= begin) & (of_event < end)
        yield assemble(
            [(each, of_shared) for each in shared] + [(each, row) for each in own],
            event_start=starts,
            row=np.where(is_action, row, of_shared),
            names=columns.names,
            shared=~is_action,
            weight=None if weights is None else np.repeat(weights[bounds[:-1]], np.diff(starts)),
            labels=Labels(
                line=logged[here] - bounds[0] + has_shared * (of_event[here] - begin + 1),
                cost=costs[here],
                probability=probabilities[here],
            ),
        )


def _logged_rows(
    columns: Columns, logs: _Logs, allowed: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32]]:
    """Return the rows that have a cost and a propensity, among the allowed ones, and these numbers."""
    if logs.cost is None or logs.probability is None:
        none = np.zeros(0, np.float32)
        return np.zeros(0, np.int64), none, none
    cost, probability = columns.numbers(logs.cost), columns.numbers(logs.probability)
    there = allowed & ~np.isnan(cost.astype(float)) & ~np.isnan(probability.astype(float))
    rows = np.flatnonzero(there)
    return rows, *check_logs(rows, cost[rows], probability[rows], rewards=logs.rewards)


def _add_missing(
    problems: Diagnostics, columns: Columns, needed: Sequence[str | None], rows: NDArray[np.int64]
) -> None:
    """Count and locate rows without a label; if an event is one row, report which column lacks a value."""
    names = [name for name in needed if name is not None]
    there = {name: columns.is_there(name) for name in names}
    for row in rows.tolist():
        lacking = [name for name in names if not there[name][row]] or names[:1]
        problems.locate(ProblemCode.NO_LABEL, row + 1, ", ".join(lacking), reading="row")
