"""``FrameLog``: logged decisions in the columns of a frame, and the importance weights of other policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from onlineauto.errors import InputError, kind_of, short_repr
from onlineauto.formats.datasets.frame import FrameColumns
from onlineauto.formats.mappings.values import is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

PolicyColumn: TypeAlias = "str | Sequence[Any] | Mapping[Any, str] | NDArray[Any] | Callable[[Any], Any]"
"""A target policy in a frame; see `onlineauto.Evaluation.from_frame`."""

_LISTED = 3
"""Number of rows that a message names."""
_ROUNDING = 1e-3
"""How far the sum of probabilities may be from 1."""


@dataclass(frozen=True, slots=True)
class Target:
    """A target policy on the rows of a `FrameLog`."""

    weight: NDArray[np.float64]  # Probability of the logged action over its propensity.
    missing: NDArray[np.float64]  # Probability of all actions that were never logged.
    never_logged: dict[Any, float]  # Such actions with their mean probabilities.


class FrameLog:
    """The rows of a frame that have an action and a reward, in the order of time."""

    def __init__(
        self,
        frame: Any,
        *,
        action: str,
        reward: str,
        probability: str,
        time: str | None,
        choices: Sequence[Any] | None,
        sign: float,
    ) -> None:
        self._frame = frame
        self._columns = None if isinstance(frame, Mapping) else FrameColumns(frame)
        self.n_rows = 0
        actions = self.column(action)
        self.n_rows = len(actions)
        rewards = _numbers(self.column(reward), reward)
        propensity = _numbers(self.column(probability), probability)
        for name, values in ((reward, rewards), (probability, propensity)):
            if values.shape != (self.n_rows,):
                raise InputError(f"column {name!r} has the shape {values.shape}, not one number for each row")
        logged = ~(np.isnan(rewards) | np.fromiter(map(is_missing, actions), bool, self.n_rows))
        rows = np.flatnonzero(logged)
        if not len(rows):
            raise InputError(f"no row of the frame has both {action!r} and {reward!r}")
        nested = [row for row in rows.tolist() if isinstance(actions[row], list | dict)]
        refuse(nested, f"column {action!r} has lists, which are no actions")
        refuse(rows[np.isinf(rewards[rows])], f"column {reward!r} has infinite values")
        p = propensity[rows]
        bad = rows[~((p > 0) & (p <= 1))]
        refuse(bad, f"column {probability!r} is the probability of the logged action, above 0 and at most 1")
        self.times: list[Any] | None = None
        if time is not None:
            times = self.column(time)
            refuse([row for row in rows.tolist() if is_missing(times[row])], f"column {time!r} has no time")
            try:
                rows = np.array(sorted(rows.tolist(), key=times.__getitem__), np.int64)
            except TypeError:
                raise InputError(f"column {time!r} has values that cannot be compared") from None
            self.times = [times[row] for row in rows.tolist()]
        self.row = rows
        self.reward, self.probability = sign * rewards[rows], propensity[rows]
        actions = [actions[row] for row in rows.tolist()]
        self.choices = _sorted(set(actions)) if choices is None else list(choices)
        index = {choice: at for at, choice in enumerate(self.choices)}
        refuse(
            [row for row, each in zip(rows.tolist(), actions, strict=True) if each not in index],
            f"column {action!r} has actions that are not in choices",
        )
        self.action = np.array([index[each] for each in actions], np.int64)

    def __len__(self) -> int:
        """Return the number of rows that have an action and a reward."""
        return len(self.row)

    def column(self, name: str) -> list[Any]:
        """Return the values of a column."""
        if self._columns is not None:
            array = self._columns.array(name)
            return list(self._columns.values(name) if array is None else array.to_pylist())
        if name not in self._frame:
            raise InputError(f"there is no column {name!r}; there are {', '.join(map(str, self._frame))}")
        values = _values(self._frame[name])
        if len(values) != (self.n_rows or len(values)):
            raise InputError(f"column {name!r} has {len(values)} values, and others have {self.n_rows}")
        return values

    def target(self, name: str, policy: PolicyColumn) -> Target:
        """Return a target policy on the rows of the log."""
        given: Any = policy(self._frame) if callable(policy) else policy
        if isinstance(given, str):
            given = self.column(given)
        elif isinstance(given, Mapping):
            if set(given) != set(self.choices):
                raise InputError(f"{name}: name a column for each of the actions {short_repr(self.choices)}")
            given = np.column_stack([_numbers(self.column(given[each]), name) for each in self.choices])
        elif hasattr(given, "shape") and hasattr(given, "columns"):
            given = self._of_columns(name, FrameColumns(given))
        elif not isinstance(given, Iterable):
            raise InputError(
                f"{name}: a policy is a column, an array, a frame with a column of probabilities for each "
                f"action, or a function of the frame that returns one; not {kind_of(given)}"
            )
        given = _values(given)
        if len(given) != self.n_rows:
            raise InputError(f"{name}: {len(given)} values for the {self.n_rows} rows of the frame")
        given = [given[row] for row in self.row.tolist()]
        if isinstance(given[0], float):
            p = _numbers(given, name)
            if set(p[~np.isnan(p)].tolist()) <= set(self.choices):
                raise InputError(
                    f"{name}: its floats are probabilities of the logged action, but all of them equal "
                    f"actions of {short_repr(self.choices)}: cast actions to int or str; or name a column of "
                    "probabilities for each action: {action: column}"
                )
            refuse(self.row[~((p >= 0) & (p <= 1))], f"{name}: a probability is from 0 to 1")
            return Target(p / self.probability, np.zeros(len(p)), {})
        choices = self.choices
        if not isinstance(given[0], list | tuple):
            choices = self._with_actions_of(given, name)
            number = {choice: at for at, choice in enumerate(choices)}
            given = np.eye(len(choices))[[number[each] for each in given]]
        pmf = _numbers(given, name)
        if pmf.shape != (len(self), len(choices)):
            raise InputError(
                f"{name}: {pmf.shape[-1]} probabilities in a row for the {len(choices)} actions "
                f"{short_repr(choices)}: name all actions in choices"
            )
        wrong = ~((pmf >= 0).all(axis=1) & (abs(pmf.sum(axis=1) - 1) <= _ROUNDING))
        refuse(self.row[wrong], f"{name}: probabilities are not negative and add up to 1")
        never = np.bincount(self.action, minlength=len(choices)) == 0
        means = pmf.mean(axis=0)
        return Target(
            pmf[np.arange(len(self)), self.action] / self.probability,
            pmf[:, never].sum(axis=1),
            {choices[at]: float(means[at]) for at in np.flatnonzero(never & (means > 0)).tolist()},
        )

    def _of_columns(self, name: str, columns: FrameColumns) -> NDArray[np.float64]:
        """Return the probabilities of a frame that has a column for each action."""
        names = list(map(str, self.choices))
        if set(columns.names) != set(names):
            raise InputError(
                f"{name}: its columns {short_repr(columns.names)} are not the actions {short_repr(names)}"
            )
        return np.column_stack([_numbers(columns.values(column), name) for column in names])

    def _with_actions_of(self, actions: Sequence[Any], name: str) -> list[Any]:
        """Return the choices, and after them the other actions that a policy takes."""
        refuse(
            [row for row, each in zip(self.row.tolist(), actions, strict=True) if is_missing(each)],
            f"{name}: no action",
        )
        taken = set(actions)
        if taken.isdisjoint(self.choices):
            raise InputError(
                f"{name}: {short_repr(actions[0])} is none of the actions {short_repr(self.choices)}; "
                "probabilities are floats"
            )
        return [*self.choices, *_sorted(taken - set(self.choices))]


def refuse(rows: Sequence[int] | NDArray[np.int64], problem: str) -> None:
    """Raise an error that names the first of some rows, if there are any."""
    if len(rows):
        more = f" and {len(rows) - _LISTED:,} more" if len(rows) > _LISTED else ""
        raise InputError(f"{problem}: row {', '.join(str(int(row)) for row in rows[:_LISTED])}{more}")


def _values(column: Any) -> list[Any]:
    """Return the values of an array or a column for Python."""
    methods = (method for method in ("to_pylist", "tolist", "to_list") if hasattr(column, method))
    return list(getattr(column, next(methods, "__iter__"))())


def _sorted(values: set[Any]) -> list[Any]:
    """Return values in order, those of several types by their texts."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _numbers(values: Sequence[Any], name: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN for null."""
    try:
        array = np.asarray(values)
        texts = array.dtype.kind in "SU" or (
            array.dtype.kind == "O" and any(isinstance(each, str | bytes) for each in array.flat)
        )
        if texts:  # which numpy would read as numbers
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        kinds = ", ".join(sorted({kind_of(value) for value in values}))
        raise InputError(f"{name}: these are {kinds}, and not numbers, the same for each row") from None
