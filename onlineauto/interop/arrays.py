"""``from_arrays``: NumPy's arrays and SciPy's sparse arrays as Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.datasets.arrow_arrays import as_float32, without_zeros
from onlineauto.formats.datasets.event_table import EventTable, InMemory, NumberColumn
from onlineauto.formats.datasets.features import ColumnFeatures, Encoder, repeated
from onlineauto.formats.mappings.name_hashes import NameHashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from onlineauto.features.block import Block


def from_arrays(
    context: Any,
    *,
    actions: Any = None,
    chosen: ArrayLike | None = None,
    cost: ArrayLike | None = None,
    probability: ArrayLike | None = None,
    label: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    namespaces: tuple[str, str] = ("context", "action"),
    names: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None),
    events_per_block: int = 4096,
    hash: str = "strings",  # noqa: A002 - the option's name
    hash_seed: int = 0,
) -> Iterator[Block]:
    """Yield blocks of events made from the rows of arrays.

    Parameters
    ----------
    context : float[n, d], dense or sparse
        Features of each event's context; without `actions`, features of single lines. Zeros and NaN, a
        missing number, are left out.
    actions : int, float[k, m], or float[n, k, m], optional
        The number of actions, whose only feature is their number; or the features of each action, dense or
        sparse, the same for all events; or the features of each action in each event.
    chosen : int[n], optional
        The logged action of each event, from 0; -1 if nothing was logged.
    cost, probability : float[n], optional
        Cost and propensity of the logged action.
    label : float[n], optional
        Labels of single lines; NaN for a line without a label.
    weight : float[n], optional
        Importance weights: the number of such events that each event represents.
    namespaces : (str, str)
        Namespaces of the context and of the actions.
    names : (sequence of str or None, sequence of str or None)
        Names of the columns of `context` and of `actions`; by default their numbers, from 0.
    events_per_block : int
        Number of events in each block.
    hash, hash_seed : str, int
        The options of the workspace that will use the blocks.

    Raises
    ------
    InputError
        If shapes do not fit or a number is invalid; the message names the row.

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> context = csr_array([[0, 1.5, 0], [2, 0, 0]])
    >>> [block] = from_arrays(context, actions=2, chosen=[1, 0], cost=[-1, 0], probability=[0.5, 0.5])
    >>> len(block), block.n_lines, block.value, block.cost
    (2, 6, array([1.5, 1. , 1. , 2. , 1. , 1. ], dtype=float32), array([-1.,  0.], dtype=float32))
    """
    names_hashed = NameHashes(hash=hash, hash_seed=hash_seed)
    encoder = Encoder(names_hashed, hash_all=hash == "all")
    shared = _rows(context, namespaces[0], names[0], encoder, "context")
    n = _n_rows(shared)
    columns = {"chosen": chosen, "cost": cost, "probability": probability, "label": label, "weight": weight}
    arrays = {name: _column(value, n, name) for name, value in columns.items() if value is not None}
    _refuse(arrays, {"chosen", "cost", "probability"} if actions is None else {"label"}, actions)
    table = EventTable.of_rows([shared], 0, n, InMemory())
    if actions is not None:
        _add_actions(table, actions, namespaces[1], names[1], encoder)
        _add_outcomes(table, arrays)
    if "label" in arrays:
        table.add_labels(_numbers(arrays, "label"))
    if "weight" in arrays:
        table.add_weights(_numbers(arrays, "weight"))
    return table.blocks(events_per_block, encoder)


def _column(value: ArrayLike, n: int, noun: str) -> NDArray[np.generic]:
    column: NDArray[np.generic] = np.asarray(value)
    if column.shape != (n,):
        raise InputError(f"{noun} has the shape {column.shape}, but context has {n} rows")
    if column.dtype.kind not in "biuf" or (noun == "chosen" and column.dtype.kind not in "iu"):
        raise InputError(f"{noun} has the type {column.dtype}, not {'whole ' * (noun == 'chosen')}numbers")
    return column


def _refuse(arrays: dict[str, Any], names: set[str], actions: Any) -> None:
    """Reject the arrays that do not belong to events with or without actions."""
    for name in arrays:
        if name in names:
            reason = (
                "is for events with actions" if actions is None else "is for single lines, without actions"
            )
            raise InputError(f"{name} {reason}")
    logs = arrays.keys() - {"weight", "label"}
    if logs and logs != {"chosen", "cost", "probability"}:
        raise InputError("chosen, cost and probability go together")


def _n_rows(rows: ColumnFeatures) -> int:
    return 0 if rows.start is None else len(rows.start) - 1


def _rows(
    matrix: Any, namespace: str, names: Sequence[str] | None, encoder: Encoder, noun: str
) -> ColumnFeatures:
    """Return the features of the rows of a matrix, dense or sparse; `noun` is its name in messages."""
    number = encoder.names.namespace(namespace)
    sparse = hasattr(matrix, "tocsr")
    values: Any = matrix.tocsr() if sparse else np.asarray(matrix)
    if values.ndim != 2:
        raise InputError(
            f"{noun} has the shape {values.shape}: give a matrix with a row of features for each"
        )
    if values.dtype.kind not in "biuf":
        raise InputError(f"{noun} has the type {values.dtype}, not numbers")
    n_rows, n_columns = values.shape
    columns = [str(i) for i in range(n_columns)] if names is None else list(names)
    if len(columns) != n_columns:
        raise InputError(f"there are {len(columns)} names, but {n_columns} columns of {noun}")
    hashes = encoder.names.features(columns, number)
    start = np.arange(n_rows + 1) * n_columns
    if sparse:
        values = values.copy()
        values.sum_duplicates()
        start, hashes, values = values.indptr.astype(np.int64), hashes[values.indices], values.data
    else:
        hashes = np.tile(hashes, n_rows)
    features = ColumnFeatures(
        encoder.namespace(noun, namespace),
        hashes,
        value=without_zeros(as_float32(values.ravel())),
        start=start,
    )
    for element, row in zip(*features.infinite(), strict=True):
        value = values.ravel()[element]
        raise InputError(
            f"row {row}: {noun} has the value {value}, which is infinite or too large for a float32"
        )
    return features


def _add_actions(
    table: EventTable, actions: Any, namespace: str, names: Sequence[str] | None, encoder: Encoder
) -> None:
    """Add the actions of all events, or those of each event."""
    n = len(table)
    if isinstance(actions, int | np.integer):
        if actions < 1:
            raise InputError(f"there are {actions} actions; an event needs at least one")
        actions = np.eye(int(actions))
    if not hasattr(actions, "tocsr") and np.ndim(actions) == 3:
        actions = np.asarray(actions)
        n_actions = actions.shape[1]
        if len(actions) != n or n_actions == 0:
            raise InputError(f"actions has the shape {actions.shape}, but context has {n} rows")
        matrix = actions.reshape(n * n_actions, actions.shape[2])
        table.elements = [_rows(matrix, namespace, names, encoder, "actions")]
    else:
        rows = _rows(actions, namespace, names, encoder, "actions")
        n_actions = _n_rows(rows)
        if not n_actions:
            raise InputError("there is no action: actions has no rows")
        table.elements = repeated(rows)
    table.element_start = np.arange(n + 1) * n_actions


def _add_outcomes(table: EventTable, arrays: dict[str, NDArray[np.generic]]) -> None:
    """Add the logged outcomes, if there are any; an index of -1 is none, and its cost is not read."""
    if "chosen" not in arrays or table.element_start is None:
        return
    chosen, n_actions = (
        np.asarray(arrays["chosen"], np.int64),
        int(np.diff(table.element_start).max(initial=0)),
    )
    wrong = (chosen < -1) | (chosen >= n_actions)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"row {row}: chosen is {chosen[row]}, but there are {n_actions} actions, numbered from 0"
        )
    cost, probability = _numbers(arrays, "cost"), _numbers(arrays, "probability")
    for numbers in (cost, probability):
        if (missing := np.isnan(numbers.values) & (chosen >= 0)).any():
            row = int(np.argmax(missing))
            raise InputError(f"row {row}: {numbers.column} is NaN; chosen is -1 where nothing was logged")
    table.chosen = chosen
    cost = cost._replace(values=np.where(chosen < 0, np.float32(np.nan), cost.values))
    table.add_outcomes(cost, probability, action=("chosen", lambda row: str(chosen[row])))


def _numbers(arrays: dict[str, NDArray[np.generic]], name: str) -> NumberColumn:
    return NumberColumn(as_float32(arrays[name]), arrays[name], name)
