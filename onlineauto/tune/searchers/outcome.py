"""``Outcome``: the result of a trial: a number for each objective, and the values of constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Final

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import number

if TYPE_CHECKING:
    from collections.abc import Sequence

VALUE: Final = "value"
"""The name of the objective of a study that has one."""
_CONSTRAINTS: Final = "constraints"
_SIGNS: Final = {"min": 1.0, "max": -1.0}
INFEASIBLE: Final = 1e300
"""The loss of a trial that violates a constraint is between this number and twice this number."""


def objectives_of(mode: Any) -> dict[str, float]:
    """Return the name of each objective and the factor that turns its value into a loss.

    >>> objectives_of("max"), objectives_of(["min", "max"]), objectives_of({"loss": "min", "size": "min"})
    ({'value': -1.0}, {'0': 1.0, '1': -1.0}, {'loss': 1.0, 'size': 1.0})
    """
    modes: Mapping[Any, Any] = {VALUE: mode}
    if isinstance(mode, Mapping):
        modes = mode
    elif isinstance(mode, list | tuple):
        modes = {str(index): word for index, word in enumerate(mode)}
    names = all(isinstance(name, str) and name != _CONSTRAINTS for name in modes)
    signs = all(isinstance(word, str) and word in _SIGNS for word in modes.values())
    if not names or not signs or len(modes) < 1 + (not isinstance(mode, str)):
        raise OptionError(
            f"mode = {mode!r}: valid are min, max; or for several objectives a list of two or more of these, "
            "or a mapping of names to these"
        )
    return {name: _SIGNS[word] for name, word in modes.items()}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The values of a trial by objective, and those of its constraints, which are met if at most 0."""

    values: Mapping[str, float]
    constraints: Mapping[str, float]

    @classmethod
    def of(cls, result: Any, objectives: Sequence[str]) -> Outcome:
        """Return the outcome from a number, a sequence of numbers, or a mapping with names of objectives.

        A mapping may also have ``constraints``: a mapping or a sequence of numbers.
        """
        names = list(objectives)
        result = _plain(result)
        if isinstance(result, Mapping) and (len(names) > 1 or VALUE in result):
            constraints = _plain(result.get(_CONSTRAINTS) or {})
            if isinstance(constraints, list | tuple):
                constraints = {str(index): value for index, value in enumerate(constraints)}
            if set(result) - {_CONSTRAINTS} != set(names) or not isinstance(constraints, Mapping):
                raise OptionError(f"the result has {', '.join(map(str, result))}: give {', '.join(names)}")
            values = {name: number(result[name]) for name in names}
            return cls(values, {str(name): number(value) for name, value in constraints.items()})
        if len(names) == 1:
            return cls({names[0]: number(result)}, {})
        if not isinstance(result, list | tuple) or len(result) != len(names):
            raise OptionError(
                f"the result is {short_repr(result)}: return {len(names)} numbers, one per objective"
            )
        return cls(dict(zip(names, map(number, result), strict=True)), {})

    @property
    def first(self) -> float:
        """The value of the first objective."""
        return next(iter(self.values.values()))

    @property
    def has_nan(self) -> bool:
        """True if a value or a constraint is not a number."""
        return any(map(isnan, (*self.values.values(), *self.constraints.values())))

    def record(self) -> dict[str, Any]:
        """Return the part of a ``told`` record that contains this outcome."""
        several = {"values": dict(self.values)} if len(self.values) > 1 else {}
        constraints = {_CONSTRAINTS: dict(self.constraints)} if self.constraints else {}
        return {VALUE: self.first, **several, **constraints}


def first_number(result: Any) -> float:
    """Return the value of the first objective of a result; NaN if it is not a number."""
    plain = _plain(result)
    if isinstance(plain, Mapping):
        return number(plain.get(VALUE, next(iter(plain.values()), nan)))
    return number(plain[0] if isinstance(plain, list | tuple) and len(plain) > 1 else plain)


def losses_of(record: Mapping[str, Any], objectives: Mapping[str, float]) -> list[float]:
    """Return the loss of each objective from a ``told`` record that was checked.

    Every loss of a trial that violates constraints is larger than those of all others, and increases with the
    sum of its violations. The trial is therefore worse than every feasible one for all schedulers and
    searchers.

    >>> losses_of({"value": 3.0}, {"value": -1.0})
    [-3.0]
    >>> losses_of({"value": 3.0, "constraints": {"memory": 1.0, "time": -5.0}}, {"value": 1.0})
    [1.5e+300]
    """
    values = record.get("values") or {VALUE: record[VALUE]}
    violation = sum(max(value, 0.0) for value in record.get(_CONSTRAINTS, {}).values())
    if violation > 0:
        return [INFEASIBLE * (2 - 1 / (1 + violation))] * len(objectives)
    return [sign * values.get(name, record[VALUE]) for name, sign in objectives.items()]


def _plain(result: Any) -> Any:
    """Return an array of one dimension as a list, and anything else unchanged."""
    return result.tolist() if getattr(result, "ndim", 0) == 1 and hasattr(result, "tolist") else result
