"""``Parameter``: one number or word that a tuner chooses: ``Float``, ``Int`` or ``Categorical``.

Each value has a code: a block of numbers between 0 and 1. Uniform codes decode to the distribution of the
parameter: uniform, log-uniform, or every integer and every word equally likely.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from onlineauto.errors import OptionError, short_repr
from onlineauto.tune.plain import as_int, as_json, number, scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

_FARTHEST = 50.0
"""Maximum of a squared distance from a prior, in units of its spread: a wrong prior can be overcome."""
_OFF_STEP = 1e-6
"""Maximum distance of a value from a multiple of the step, as a part of the step."""
_LARGEST = 10**300
"""The largest bound of an `Int`: the difference of two bounds is a float."""
Value = bool | int | float | str | None
"""A value in a config: plain JSON."""


class Parameter(ABC):
    """One dimension of a space."""

    kind: ClassVar[str]  # The name of the kind in TOML.
    # The parameter exists only if each of these other parameters has one of these values.
    when: Mapping[str, Sequence[Value]]
    prior: Value  # The value that is believed to be good, or None.
    spread: float  # The uncertainty of the prior.

    @property
    def width(self) -> int:
        """The length of the code."""
        return 1

    @property
    def categories(self) -> int:
        """The number of words; 0 if the parameter is a number."""
        return 0

    @abstractmethod
    def encode(self, value: Any) -> list[float]:
        """Return the code of a value: `width` numbers in [0, 1]."""

    def encode_within(self, value: Any, uniform: Sequence[float]) -> list[float]:
        """Return a code that decodes to a value, chosen among all such codes by random numbers in [0, 1)."""
        del uniform
        return self.encode(value)

    @property
    def size(self) -> float:
        """The number of values; infinite if the parameter is continuous."""
        return math.inf

    @abstractmethod
    def decode(self, code: Sequence[float]) -> Value:
        """Return the value of a code."""

    @abstractmethod
    def holds(self, value: object) -> bool:
        """Return whether a value is valid."""

    def check(self, name: str, value: object) -> None:
        """Raise `OptionError` if a value of this parameter, which has this name, is not valid."""
        if not self.holds(value):
            raise OptionError(f"{name} = {short_repr(value)} is outside the space; valid is {self}")

    def plain(self, value: Any) -> Any:
        """Return a value as a config stores it: numbers of NumPy and others become Python numbers."""
        return scalar(value)

    def of_cell(self, cell: Any) -> Any:
        """Return the value that a cell of a table represents; the cell itself if it represents none.

        Files and frames do not store types: 70 may be the word "70", "1.0" the number 1, and missing None.

        >>> Categorical(["70", 5]).of_cell(70), Categorical([1, None]).of_cell("1.0")
        ('70', 1)
        """
        return self.plain(number_of_text(cell))

    def draw(self, rng: np.random.Generator) -> Value:
        """Return a random value of the prior, or of the whole range if there is no prior."""
        if self.prior is None or (self.categories and rng.random() < self.spread):
            return self.decode(rng.random(max(self.width, 1)).tolist())
        if self.categories:
            return self.prior
        centre, code = self.encode(self.prior)[0], -1.0
        while not 0 <= code <= 1:
            code = centre + self.spread * float(rng.standard_normal())
        return self.decode([code])

    def log_prior(self, value: Any) -> float:
        """Return the logarithm of the prior density of a value, relative to its maximum; 0 without a prior.

        >>> Float(0, 1, prior=0.5, spread=0.25).log_prior(0.75)
        -0.5
        """
        if self.prior is None:
            return 0.0
        if self.categories:
            least = self.spread / self.categories
            return 0.0 if self.plain(value) == self.prior else math.log(least / (1 - self.spread + least))
        distance = (self.encode(value)[0] - self.encode(self.prior)[0]) / self.spread
        return -0.5 * min(distance**2, _FARTHEST)

    @abstractmethod
    def grid(self, points: int) -> list[Value]:
        """Return up to `points` distinct values, evenly spaced in the code."""

    @abstractmethod
    def described(self) -> dict[str, Any]:
        """Return the declaration as plain JSON, without `when`."""

    def _with_prior(self, declared: dict[str, Any]) -> dict[str, Any]:
        prior = {} if self.prior is None else {"prior": self.prior, "spread": self.spread}
        return declared | prior

    def _check_prior(self) -> None:
        """Convert the prior, and raise `OptionError` if it is not a value of the parameter."""
        object.__setattr__(self, "prior", self.plain(self.prior))
        if self.prior is not None and not self.holds(self.prior):
            raise OptionError(f"prior = {short_repr(self.prior)} is outside the range: {self.described()}")
        spread = number(self.spread)
        if not 0 < spread <= 1:
            raise OptionError(f"spread = {short_repr(self.spread)}: give a number above 0 and up to 1")
        object.__setattr__(self, "spread", spread)

    def __str__(self) -> str:
        """Return the valid values, for messages."""
        return ", ".join(f"{name} {value}" for name, value in self.described().items())


def _conditions(when: Mapping[str, Any] | None) -> dict[str, tuple[Value, ...]]:
    """Return conditions with a tuple of values each; a single value becomes a tuple of one."""
    if when is not None and not isinstance(when, Mapping):
        raise OptionError(
            f"when = {when!r}: give values by names of parameters, as in {{'loss': 'logistic'}}"
        )
    return {
        name: tuple(map(scalar, values)) if isinstance(values, list | tuple) else (scalar(values),)
        for name, values in (when or {}).items()
    }


def _check_bounds(kind: str, low: float, high: float, lowest: float | None) -> None:
    if any(isinstance(bound, bool) or not isinstance(bound, int | float) for bound in (low, high)):
        raise OptionError(f"{kind}({low!r}, {high!r}): the bounds must be numbers")
    bounds: tuple[Any, ...] = low, high
    for bound in bounds:  # math.isfinite raises an error for a larger int
        if not abs(bound) <= (_LARGEST if kind == "Int" else sys.float_info.max):
            actual = str(bound) if isinstance(bound, float) else f"{bound.bit_length()} bits"
            most = "1e300" if kind == "Int" else "1.797e308"
            raise OptionError(f"{kind}: the bounds must be finite, and up to {most}; one has {actual}")
    if low > high:
        raise OptionError(f"{kind}({low}, {high}) has no values: the lower bound comes first")
    if lowest is not None and low < lowest:
        raise OptionError(f"{kind}({low}, {high}, log=True): the lower bound must be positive")


def _checked_step(kind: str, step: Any, log: bool) -> Any:
    step = scalar(step)
    if not 0 < number(step) < math.inf or isinstance(step, bool) or log:
        what = "does not go with log=True" if log else "give a number above 0; for an Int, a whole one"
        raise OptionError(f"{kind}: step = {short_repr(step)}: {what}")
    return step


def _at_step(low: float, n_steps: int, step: float) -> Any:
    """Return ``low + n_steps * step``, without the rounding error of binary fractions."""
    return type(low + step)(Decimal(str(low)) + n_steps * Decimal(str(step)))


_MOST_STEPS = 2**53
"""Maximum number of steps of a `Float`."""


@dataclass(frozen=True, slots=True)
class Float(Parameter):
    """A number between two bounds, both included.

    Parameters
    ----------
    low, high : float
        The bounds.
    log : bool
        True to search on a logarithmic scale.
    step : number, optional
        The distance of two values: only `low`, ``low + step``, … up to `high` are valid. Not with `log`.
    when : mapping, optional
        Where the parameter exists: ``when={"loss": "logistic"}``.
    prior : number, optional
        A value that is believed to be good: it is tried first, and more configs near it are tried.
    spread : float
        The standard deviation of the prior, as a part of the range (of the logarithmic one with `log`).

    Raises
    ------
    OptionError
        If there is no value between the bounds, or `log` and a bound that is not positive.

    Examples
    --------
    >>> Float(1e-4, 1, log=True).decode([0.5])
    0.01
    """

    low: float
    high: float
    log: bool = False
    step: float | None = field(default=None, kw_only=True, repr=False)
    when: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    prior: float | None = field(default=None, kw_only=True, repr=False)
    spread: float = field(default=0.25, kw_only=True, repr=False)
    kind: ClassVar[str] = "float"

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _conditions(self.when))
        object.__setattr__(self, "low", scalar(self.low))
        object.__setattr__(self, "high", scalar(self.high))
        _check_bounds("Float", self.low, self.high, 5e-324 if self.log else None)
        if self.step is not None:
            step = _checked_step("Float", self.step, self.log)
            object.__setattr__(self, "step", step)
            n_steps = int((Decimal(str(self.high)) - Decimal(str(self.low))) / Decimal(str(step)))
            if n_steps > _MOST_STEPS:
                raise OptionError(f"Float: step = {step!r} gives more than 2^53 values: leave it out")
            object.__setattr__(self, "high", _at_step(self.low, n_steps, step))
        self._check_prior()

    def encode(self, value: float) -> list[float]:  # noqa: D102
        if self.low == self.high:
            return [0.5]
        if self.step is not None:
            return [(round((value - self.low) / self.step) + 0.5) / self.size]
        if self.log:
            code = _log_of_ratio(value, self.low) / _log_of_ratio(self.high, self.low)
        elif math.isinf(self.high - self.low):
            code = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        else:
            code = (value - self.low) / (self.high - self.low)
        return [min(max(code, 0.0), 1.0)]

    def encode_within(self, value: float, uniform: Sequence[float]) -> list[float]:  # noqa: D102
        if self.step is None:
            return self.encode(value)
        return [(round((value - self.low) / self.step) + uniform[0]) / self.size]

    def decode(self, code: Sequence[float]) -> float:  # noqa: D102
        share = code[0]
        if self.step is not None:
            return float(_at_step(self.low, min(int(share * self.size), int(self.size) - 1), self.step))
        if self.log and math.isinf(self.high / self.low):
            value = math.exp(math.log(self.low) * (1 - share) + math.log(self.high) * share)
        elif self.log:
            value = self.low * (self.high / self.low) ** share
        elif math.isinf(self.high - self.low):
            value = self.low * (1 - share) + self.high * share
        else:
            value = self.low + (self.high - self.low) * share
        return float(min(max(value, self.low), self.high))

    def holds(self, value: object) -> bool:  # noqa: D102
        if not isinstance(value, int | float) or isinstance(value, bool):
            return False
        if self.step is not None and self.low <= value <= self.high:
            n_steps = (value - self.low) / self.step
            return abs(n_steps - round(n_steps)) <= _OFF_STEP
        return self.low <= value <= self.high

    @property
    def size(self) -> float:  # noqa: D102
        if self.step is not None:
            return round((self.high - self.low) / self.step) + 1
        return 1 if self.low == self.high else math.inf

    def grid(self, points: int) -> list[Value]:  # noqa: D102
        if self.low == self.high or points == 1:
            return [self.decode([0.5])]
        points = int(min(points, self.size))
        return list(dict.fromkeys(self.decode([index / (points - 1)]) for index in range(points)))

    def described(self) -> dict[str, Any]:  # noqa: D102
        declared = {"type": "float", "low": self.low, "high": self.high, "log": self.log}
        return self._with_prior(declared | ({} if self.step is None else {"step": self.step}))


@dataclass(frozen=True, slots=True)
class Int(Parameter):
    """A whole number between two bounds, both included.

    Without `log` every number is equally likely. With `log`, the probability of a number is its share of the
    logarithmic scale from ``low - 1/2`` to ``high + 1/2``.

    Parameters
    ----------
    low, high : int
        The bounds.
    log : bool
        True to search on a logarithmic scale.
    step : number, optional
        The distance of two values: only `low`, ``low + step``, … up to `high` are valid. Not with `log`.
    when : mapping, optional
        Where the parameter exists: ``when={"loss": "logistic"}``.
    prior : number, optional
        A value that is believed to be good: it is tried first, and more configs near it are tried.
    spread : float
        The standard deviation of the prior, as a part of the range (of the logarithmic one with `log`).

    Raises
    ------
    OptionError
        If there is no value between the bounds, or `log` and a bound that is not positive.

    Examples
    --------
    >>> [Int(0, 3).decode([at / 40]) for at in range(41)].count(3)
    11
    """

    low: int
    high: int
    log: bool = False
    step: int = field(default=1, kw_only=True, repr=False)
    when: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    prior: int | None = field(default=None, kw_only=True, repr=False)
    spread: float = field(default=0.25, kw_only=True, repr=False)
    kind: ClassVar[str] = "int"

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", _conditions(self.when))
        _check_bounds("Int", scalar(self.low), scalar(self.high), 1 if self.log else None)
        low, high = as_int(self.low), as_int(self.high)
        if low is None or high is None:
            raise OptionError(f"Int({self.low}, {self.high}): the bounds must be whole numbers")
        object.__setattr__(self, "low", low)
        if as_int(self.step) != 1:
            object.__setattr__(self, "step", _checked_step("Int", as_int(self.step), self.log))
        object.__setattr__(self, "high", high - (high - low) % self.step)
        self._check_prior()

    def plain(self, value: Any) -> Any:  # noqa: D102
        number = as_int(value)
        return scalar(value) if number is None else number

    def encode(self, value: float) -> list[float]:  # noqa: D102
        if self.log:
            floor = self.low - 0.5
            return [math.log(value / floor) / math.log((self.high + 0.5) / floor)]
        return [((value - self.low) / self.step + 0.5) / self.size]

    def encode_within(self, value: int, uniform: Sequence[float]) -> list[float]:  # noqa: D102
        if self.log:
            floor, scale = self.low - 0.5, math.log((self.high + 0.5) / (self.low - 0.5))
            below, above = (math.log(edge / floor) / scale for edge in (value - 0.5, value + 0.5))
            code = [below + (above - below) * uniform[0]]
        else:
            code = [((value - self.low) / self.step + uniform[0]) / self.size]
        return code if self.decode(code) == value else self.encode(value)

    @property
    def size(self) -> float:  # noqa: D102
        return (self.high - self.low) // self.step + 1

    def decode(self, code: Sequence[float]) -> int:  # noqa: D102
        if self.log:
            floor = self.low - 0.5
            value = round(float(floor * ((self.high + 0.5) / floor) ** code[0]))
        else:
            value = self.low + int(code[0] * self.size) * self.step
        return min(max(value, self.low), self.high)

    def holds(self, value: object) -> bool:  # noqa: D102
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.low <= value <= self.high and (value - self.low) % self.step == 0

    def grid(self, points: int) -> list[Value]:  # noqa: D102
        points = int(min(points, self.size))
        if points == 1:
            return [self.decode([0.5])]
        return list(dict.fromkeys(self.decode([step / (points - 1)]) for step in range(points)))

    def described(self) -> dict[str, Any]:  # noqa: D102
        declared = {"type": "int", "low": self.low, "high": self.high, "log": self.log}
        return self._with_prior(declared | ({} if self.step == 1 else {"step": self.step}))


@dataclass(frozen=True, slots=True)
class Categorical(Parameter):
    """One of a few words or numbers without an order.

    The code of three or more values has one number per value, and the highest number wins. The code of two
    values is one number.

    Parameters
    ----------
    values : sequence
        Distinct values: text, numbers, booleans or None.
    when : mapping, optional
        Where the parameter exists: ``when={"loss": "logistic"}``.
    prior : optional
        A value that is believed to be good: it is tried first, and more often. None means no prior.
    spread : float
        The share of draws from the prior that may be any value.

    Raises
    ------
    OptionError
        If there is no value, a value is repeated, or a value is not plain JSON.

    Examples
    --------
    >>> Categorical(["a", "b", "c"]).encode("b")
    [0.0, 1.0, 0.0]
    """

    values: Sequence[Value]
    when: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    prior: Value = field(default=None, kw_only=True, repr=False)
    spread: float = field(default=0.5, kw_only=True, repr=False)
    kind: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        if isinstance(self.values, str | bytes) or not isinstance(self.values, Iterable):
            raise OptionError(f"Categorical({self.values!r}): give a list of values, not one text or number")
        values: tuple[Any, ...] = tuple(map(scalar, self.values))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "when", _conditions(self.when))
        if not values:
            raise OptionError("Categorical([]) has no values: name at least one")
        if plain := [value for value in values if not isinstance(value, Value)]:
            raise OptionError(f"Categorical: {plain[0]!r} is not a text, number, boolean or None")
        for value in values:
            as_json(value, "a value of Categorical")
        if any(isinstance(value, float) and math.isnan(value) for value in values):
            raise OptionError(f"Categorical({list(values)}): NaN does not equal itself; give None or a text")
        if len({_key(value) for value in values}) < len(values):
            raise OptionError(f"Categorical({list(values)}): a value is repeated")
        self._check_prior()

    @property
    def categories(self) -> int:
        """The number of words."""
        return len(self.values)

    @property
    def width(self) -> int:
        """The length of the code: 0 for one word, 1 for two words, n for n > 2 words."""
        return self.categories if self.categories > 2 else self.categories - 1

    def index(self, value: Value) -> int:
        """Return the index of a value."""
        return [_key(candidate) for candidate in self.values].index(_key(value))

    def encode(self, value: Value) -> list[float]:  # noqa: D102
        index = self.index(value)
        if self.width == self.categories:
            return [float(place == index) for place in range(self.width)]
        return [0.25 + 0.5 * index][: self.width]

    def encode_within(self, value: Value, uniform: Sequence[float]) -> list[float]:  # noqa: D102
        index = self.index(value)
        if self.width < self.categories:
            return [0.5 * (index + number) for number in uniform]
        code = list(uniform)
        highest = max(range(self.width), key=code.__getitem__)
        code[index], code[highest] = code[highest], code[index]
        return code

    def of_cell(self, cell: Any) -> Any:  # noqa: D102
        plain = scalar(cell)
        for reading in (plain, number_of_text(plain)):
            if self.holds(reading):
                return self.values[self.index(reading)]
        whole = as_int(plain)
        texts = "" if plain is None else str(plain), str(plain if whole is None else whole)
        return next((value for value in self.values if str(value) in texts), plain)

    @property
    def size(self) -> float:  # noqa: D102
        return self.categories

    def decode(self, code: Sequence[float]) -> Value:  # noqa: D102
        if self.width == self.categories:
            return self.values[max(range(self.width), key=code.__getitem__)]
        return self.values[1 if self.width and code[0] >= 0.5 else 0]

    def holds(self, value: object) -> bool:  # noqa: D102
        return isinstance(value, Value) and _key(value) in [_key(candidate) for candidate in self.values]

    def grid(self, points: int) -> list[Value]:  # noqa: ARG002, D102
        return list(self.values)

    def described(self) -> dict[str, Any]:  # noqa: D102
        return self._with_prior({"type": "choice", "values": list(self.values)})


def number_of_text(value: Any) -> Any:
    """Return the finite number that a text represents; any other value unchanged."""
    for kind in (int, float) if isinstance(value, str) else ():
        with suppress(ValueError):
            parsed = kind(value)
            return parsed if math.isfinite(parsed) else value
    return value


def _log_of_ratio(value: float, low: float) -> float:
    """Return the logarithm of a ratio, even if the ratio exceeds the range of floats."""
    ratio = value / low
    return math.log(value) - math.log(low) if math.isinf(ratio) else math.log(ratio)


def _key(value: Value) -> tuple[bool, Value]:
    """Return a key that distinguishes True from 1."""
    return isinstance(value, bool), value
