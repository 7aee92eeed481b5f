"""``from_arrays``: NumPy's arrays and SciPy's sparse arrays as Blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.interop.log_columns import check_logs, check_weights, label_column
from onlineauto.interop.rows import Labels, Rows, assemble, rows_of_matrix

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
    hashes = NameHashes(hash=hash, hash_seed=hash_seed)
    shared = _rows(context, namespaces[0], names[0], hashes, "context")
    n = len(shared)
    columns = {"chosen": chosen, "cost": cost, "probability": probability, "label": label, "weight": weight}
    arrays = {name: _column(value, n, name) for name, value in columns.items() if value is not None}
    if actions is None:
        _refuse(arrays, {"chosen", "cost", "probability"}, "is for events with actions")
        return _single_lines(shared, arrays, hashes, events_per_block)
    _refuse(arrays, {"label"}, "is for single lines, without actions")
    logs = arrays.keys() - {"weight"}
    if logs and logs != {"chosen", "cost", "probability"}:
        raise InputError("chosen, cost and probability go together")
    action_rows, k = _actions(actions, n, namespaces[1], names[1], hashes)
    return _events(shared, action_rows, k, arrays, hashes, events_per_block)


def _column(value: ArrayLike, n: int, noun: str) -> NDArray[np.generic]:
    column: NDArray[np.generic] = np.asarray(value)
    if column.shape != (n,):
        raise InputError(f"{noun} has the shape {column.shape}, but context has {n} rows")
    if column.dtype.kind not in "biuf" or (noun == "chosen" and column.dtype.kind not in "iu"):
        raise InputError(f"{noun} has the type {column.dtype}, not {'whole ' * (noun == 'chosen')}numbers")
    return column


def _refuse(arrays: dict[str, Any], names: set[str], reason: str) -> None:
    for name in arrays:
        if name in names:
            raise InputError(f"{name} {reason}")


def _rows(matrix: Any, namespace: str, names: Sequence[str] | None, hashes: NameHashes, noun: str) -> Rows:
    """Return the rows of a matrix, dense or sparse; `noun` is its name in messages."""
    number = hashes.namespace(namespace)
    sparse = hasattr(matrix, "tocsr")
    values: Any = matrix.tocsr() if sparse else np.asarray(matrix)
    if values.ndim != 2:
        raise InputError(
            f"{noun} has the shape {values.shape}: give a matrix with a row of features for each"
        )
    if values.dtype.kind not in "biuf":
        raise InputError(f"{noun} has the type {values.dtype}, not numbers")
    columns = [str(i) for i in range(values.shape[1])] if names is None else list(names)
    if len(columns) != values.shape[1]:
        raise InputError(f"there are {len(columns)} names, but {values.shape[1]} columns of {noun}")
    of_columns = hashes.features(columns, number)
    if not sparse:
        return rows_of_matrix(number, of_columns, _finite(values, noun))
    values = values.copy()
    values.sum_duplicates()
    values.data = _finite(values.data, noun)
    values.eliminate_zeros()
    return Rows(
        namespace=number,
        start=values.indptr.astype(np.int64),
        hash=of_columns[values.indices],
        value=values.data,
    )


def _finite(values: NDArray[Any], noun: str) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        numbers = np.nan_to_num(values.astype(np.float32), nan=0.0, posinf=np.inf, neginf=-np.inf)
    if not np.isfinite(numbers).all():
        bad = np.argwhere(~np.isfinite(numbers))[0]
        where = f"row {bad[0]}: " if numbers.ndim > 1 else ""
        value = values[tuple(bad)]
        raise InputError(f"{where}{noun} has the value {value}, which is infinite or too large for a float32")
    return numbers


def _actions(
    actions: Any, n: int, namespace: str, names: Sequence[str] | None, hashes: NameHashes
) -> tuple[Rows, int]:
    """Return the rows of the actions, shared or for each event, and the number of actions per event."""
    if isinstance(actions, int | np.integer):
        if actions < 1:
            raise InputError(f"there are {actions} actions; an event needs at least one")
        return _rows(np.eye(int(actions)), namespace, names, hashes, "actions"), int(actions)
    if not hasattr(actions, "tocsr"):
        actions = np.asarray(actions)
        if actions.ndim == 3:
            if len(actions) != n or actions.shape[1] == 0:
                raise InputError(f"actions has the shape {actions.shape}, but context has {n} rows")
            return _rows(
                actions.reshape(-1, actions.shape[2]), namespace, names, hashes, "actions"
            ), actions.shape[1]
    rows = _rows(actions, namespace, names, hashes, "actions")
    if not len(rows):
        raise InputError("there is no action: actions has no rows")
    return rows, len(rows)


def _single_lines(
    rows: Rows, arrays: dict[str, NDArray[np.generic]], hashes: NameHashes, size: int
) -> Iterator[Block]:
    label = label_column(arrays["label"], "label") if "label" in arrays else None
    weight = check_weights(arrays["weight"]) if "weight" in arrays else None
    for begin in range(0, len(rows), size):
        which = np.arange(begin, min(begin + size, len(rows)))
        yield assemble(
            [(rows, which)],
            event_start=np.arange(len(which) + 1),
            row=which,
            names=hashes,
            label=None if label is None else label[which],
            weight=None if weight is None else weight[which],
        )


def _events(
    shared: Rows, own: Rows, k: int, arrays: dict[str, NDArray[np.generic]], hashes: NameHashes, size: int
) -> Iterator[Block]:
    n, every = len(shared), len(own) == k
    chosen = np.asarray(arrays.get("chosen", np.full(n, -1)), np.int64)
    if ((chosen < -1) | (chosen >= k)).any():
        bad = int(np.argmax((chosen < -1) | (chosen >= k)))
        raise InputError(f"row {bad}: chosen is {chosen[bad]}, but there are {k} actions, numbered from 0")
    logged = np.flatnonzero(chosen >= 0)
    weight = check_weights(arrays["weight"]) if "weight" in arrays else None
    none = np.zeros(n, np.float32)
    cost, probability = check_logs(
        logged, arrays.get("cost", none)[logged], arrays.get("probability", none)[logged]
    )
    for begin in range(0, n, size):
        m = min(size, n - begin)
        row, action = np.repeat(np.arange(begin, begin + m), k + 1), np.tile(np.arange(k + 1) - 1, m)
        here = (logged >= begin) & (logged < begin + m)
        of_action = action if every else np.where(action < 0, -1, row * k + action)
        yield assemble(
            [(shared, np.where(action < 0, row, -1)), (own, of_action)],
            event_start=np.arange(m + 1) * (k + 1),
            row=row,
            names=hashes,
            shared=action < 0,
            weight=None if weight is None else weight[row],
            labels=Labels(
                line=(logged[here] - begin) * (k + 1) + 1 + chosen[logged[here]],
                cost=cost[here],
                probability=probability[here],
            ),
        )
