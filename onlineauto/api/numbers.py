"""``NumberEncoder``: numbers of any scale as features of a linear model: standardised, and in bins."""

from __future__ import annotations

import math
from bisect import bisect_right, insort
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec

from onlineauto.errors import InputError, short_repr
from onlineauto.estimators.typical_size_kernels import (
    BEYOND,
    FIRST_EVENTS,
    GAP,
    LARGEST_SIZE,
    ORDINARY,
    RUINED,
    SMALLEST,
    STATE,
)
from onlineauto.estimators.typical_size_kernels import judge as judge_size
from onlineauto.formats.mappings.event_kernels import LARGE
from onlineauto.formats.mappings.values import plain
from onlineauto.state.stored import MOST

if TYPE_CHECKING:
    from collections.abc import Mapping

_judge = cast("Any", judge_size).py_func


def as_float(value: Any) -> float:
    """Return a number as a float; an integer too large for a float is infinite.

    >>> as_float(2), as_float(10**400)
    (2.0, inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf


_FEW, _MANY = 4, 16
"""Numbers of bins."""
_AFTER = {16: _FEW, 128: _MANY}
"""Number of values of a name, and the number of bins from then on, each with the same share of these values.

A few bins appear soon, in the namespace of the number. Many appear later in a separate namespace, so that the
search decides whether they are crossed. Without bins, a linear model cannot separate two crescents.
"""
_LAST = max(_AFTER)
_DISTANCE = 16.0
"""Maximum distance from the mean, in standard deviations for each number so far.

The deviation of few numbers says little: the first two of a column may be equal but for rounding.
"""


class Moments(msgspec.Struct):
    """Mean and standard deviation of some numbers, with weights.

    >>> moments = Moments()
    >>> for number in (1.0, 2.0, 3.0):
    ...     moments.add(number)
    >>> moments.mean, round(moments.deviation, 3)
    (2.0, 0.816)
    """

    weight: float = 0.0
    mean: float = 0.0
    squares: float = 0.0

    def __post_init__(self) -> None:
        """Raise `ValueError` if no numbers have such a mean and such a deviation."""
        if not (
            math.isfinite(self.weight + self.mean + self.squares) and self.weight >= 0 and self.squares >= 0
        ):
            raise ValueError("a mean or a deviation is not finite, or a weight or a deviation is below 0")
        if self.squares > 0 and self.weight == 0:
            raise ValueError("numbers without a weight have no deviation")

    @property
    def deviation(self) -> float:
        """The standard deviation, 0 if all numbers are equal."""
        return math.sqrt(self.squares / self.weight) if self.squares > 0 else 0.0

    def add(self, number: float, weight: float = 1.0) -> None:
        """Count a number."""
        if weight > 0:
            self.weight += weight
            off = number - self.mean
            self.mean += off * weight / self.weight
            self.squares += weight * off * (number - self.mean)


_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST)]


class TypicalSize(msgspec.Struct):
    """The typical size of some numbers; see `onlineauto.estimators.typical_size_kernels`.

    >>> size = TypicalSize()
    >>> [size.judge(number) == BEYOND for number in (1.0, 3.0, -2.0, 1e9, 2.0)]
    [False, False, False, True, False]
    """

    state: Annotated[list[_Count], msgspec.Meta(min_length=STATE, max_length=STATE)] = msgspec.field(
        default_factory=lambda: [0] * STATE
    )
    events: _Count = 0

    def judge(self, number: float, *, before: float = 0.0) -> int:
        """Return whether a number is `ORDINARY`, is `BEYOND` all before, or has `RUINED` them; count it.

        `before` is the typical size to assume before the first number; 0 assumes none.
        """
        self.events += 1
        if number == 0.0:
            return ORDINARY
        typical, first = _size(before) if before else 0, self.events <= FIRST_EVENTS
        verdict: int = _judge([self.state], 0, _size(number), typical, first, GAP)
        return verdict


def _size(number: float) -> int:
    return min(max(math.frexp(number)[1] - SMALLEST + 1, 1), LARGEST_SIZE)


class _Values(msgspec.Struct):
    """The values of a name: their moments, the first values in order, and the limits of their bins."""

    moments: Moments = msgspec.field(default_factory=Moments)
    first: list[float] = msgspec.field(default_factory=list)
    limits: list[list[float]] = msgspec.field(default_factory=list)
    size: TypicalSize = msgspec.field(default_factory=TypicalSize)


class NumberEncoder:
    """Turns numbers into features, based on earlier numbers of the same name.

    A number becomes its distance from the mean in standard deviations, and the names of its bins. So units do
    not matter, and a linear model can fit curves. Texts, truth values, lists and nested mappings are
    unchanged.

    Examples
    --------
    >>> numbers = NumberEncoder()
    >>> for price in range(100):
    ...     numbers.add({"price": price, "colour": "red"})
    >>> numbers.encode_features({"price": 69.5, "colour": "red"})
    {'colour': 'red', 'price': {'price': 0.692..., 'bin': '3'}}
    """

    def __init__(self) -> None:
        self._known: dict[str, _Values] = {}

    @property
    def names(self) -> list[str]:
        """The names of all numbers so far."""
        return list(self._known)

    def encode_features(self, features: Mapping[Any, Any]) -> dict[str, Any]:
        """Return features with their numbers encoded, for `onlineauto.interop.from_dicts`.

        They are sorted by name, so that the order in `features` has no effect.
        """
        result: dict[str, Any] = {}
        for key in sorted(features, key=str):
            name, value = str(key), features[key]
            number = _number(key, value)
            if number is None:
                result[name] = value
                continue
            known = self._known.get(name, _UNKNOWN)
            off, deviation = number - known.moments.mean, known.moments.deviation
            limit = _DISTANCE * known.moments.weight
            # A number that was always the same has no spread, so the feature only marks its presence.
            distance = min(max(off / deviation, -limit), limit) if deviation else float(number != 0)
            of_it: dict[str, Any] = {name: distance}
            result[name] = of_it
            if known.limits:
                of_it["bin"] = str(bisect_right(known.limits[0], number))
            if len(known.limits) > 1:
                result[f"{name} bins"] = {"bin": str(bisect_right(known.limits[1], number))}
        return result

    def first_far(self, features: Mapping[Any, Any]) -> tuple[str, float] | None:
        """Return the name and value of the first number far beyond all before of its name; None without one.

        Call this once for each event to be learnt. If the first numbers of a name turn out to be outliers,
        the statistics of that name start again.
        """
        result = None
        for name, value in features.items():
            number = _number(name, value)
            if number is None:
                continue
            known = self._known.get(str(name))
            if known is None:
                known = self._known[str(name)] = _Values()
            moments = known.moments
            verdict = known.size.judge(number, before=abs(moments.mean) + 4 * moments.deviation)
            if verdict == RUINED:
                self._known[str(name)] = _Values(size=known.size)
            elif verdict == BEYOND and result is None:
                result = str(name), number
        return result

    def add(self, features: Mapping[Any, Any]) -> None:
        """Count the numbers of an event."""
        for name, value in features.items():
            number = _number(name, value)
            if number is None:
                continue
            known = self._known.get(str(name))
            if known is None:
                known = self._known[str(name)] = _Values()
            known.moments.add(number)
            if known.moments.weight <= _LAST:
                insort(known.first, number)
                n = len(known.first)
                if n in _AFTER:
                    bins = _AFTER[n]
                    known.limits.append([known.first[n * i // bins] for i in range(1, bins)])
                if n == _LAST:
                    known.first.clear()

    def state(self) -> dict[str, Any]:
        """Return the statistics as plain values, for a model file, without those of `raw_state`."""
        known = {name: values for name, values in self._known.items() if not is_raw(name)}
        state: dict[str, Any] = msgspec.to_builtins(known)
        return state

    def restore(self, state: object) -> None:
        """Restore the result of `state`."""
        self._known = msgspec.convert(state, dict[str, _Values])

    def raw_state(self) -> list[tuple[bytes, Any]]:
        """Return the part of the state whose names are not UTF-8, which texts of a model file cannot be."""
        return [
            (name.encode("utf-8", "surrogateescape"), msgspec.to_builtins(values))
            for name, values in self._known.items()
            if is_raw(name)
        ]

    def restore_raw(self, state: object) -> None:
        """Restore the result of `raw_state`, after `restore`."""
        for raw, values in msgspec.convert(state, list[tuple[bytes, _Values]]):
            self._known[raw.decode("utf-8", "surrogateescape")] = values


_UNKNOWN = _Values()
_USUAL = 1e30
"""Numbers below this one are not too large for a float32."""


def is_raw(name: str) -> bool:
    """Return whether a name has bytes that are not UTF-8."""
    return not name.isascii() and any("\udc80" <= letter <= "\udcff" for letter in name)


def _number(name: Any, value: Any) -> float | None:
    """Return a value that is a number, but not a truth value and not NaN; None for other values."""
    kind = type(value)
    if (kind is float or kind is int) and -_USUAL < value < _USUAL:
        return float(value)
    if kind is str or kind is bool:
        return None
    builtin = plain(value)
    if isinstance(builtin, bool) or not isinstance(builtin, float | int):
        return None
    number = as_float(builtin)
    if math.isnan(number):
        return None
    if abs(number) >= LARGE:
        raise InputError(f"{name}: {short_repr(value)} is infinite, or too large for a float32")
    return number
