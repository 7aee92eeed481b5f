"""Convert numbers, texts and details of any library, and states, into plain values that JSON can store."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from decimal import Decimal
from math import nan
from numbers import Rational, Real
from typing import Any, ClassVar, Final

import msgspec

from onlineauto.errors import OptionError, short_repr

_SCALARS: Final = (float, int, str, bool, type(None))
_DEEPEST: Final = 50
"""Maximum depth of nested lists and mappings; a deeper object is most likely a cycle."""
_MOST: Final = 2**53
_LONGEST: Final = 1024
"""Maximum number of bits of a whole number: the limit of floats (JSON cannot read back about 14,000 bits)."""


def scalar(value: Any) -> Any:
    """Return a number, a text or None as Python's own type; return any other value unchanged.

    NumPy scalars, arrays without dimensions, `Decimal`, `Fraction` and subclasses of Python's types become
    ``bool``, ``int``, ``float`` or ``str``.

    >>> from fractions import Fraction
    >>> import numpy as np
    >>> scalar(np.float32(0.5)), scalar(np.array(3)), scalar(np.bool_(True)), scalar(Fraction(1, 4))
    (0.5, 3, True, 0.25)
    """
    if type(value) in _SCALARS:
        return value
    if getattr(value, "ndim", None) == 0 and callable(getattr(value, "item", None)):
        item = value.item()
        # The item of a long double is a long double.
        return float(item) if type(item) is type(value) else scalar(item)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, Decimal | Rational | Real):
        try:
            return _real(value)
        except OverflowError:  # the fraction is too large for a float
            return value
    return value


def _real(value: Any) -> int | float:
    try:
        return operator.index(value)
    except TypeError:
        return float(value)


def number(value: Any) -> float:
    """Return a value as a float; NaN if the value is not a number.

    >>> number("0.5"), number(None), number(Decimal("0.5"))
    (nan, nan, 0.5)
    """
    try:
        return nan if isinstance(value, str | bytes | bytearray) else float(scalar(value))
    except (TypeError, ValueError, OverflowError, RuntimeError):  # RuntimeError: a tensor of several values
        return nan


def as_int(value: Any) -> int | None:
    """Return a whole number as an int; None if the value is not a whole number.

    >>> as_int(3.0), as_int(1.5), as_int(True)
    (3, None, None)
    """
    plain = scalar(value)
    if isinstance(plain, bool):
        return None
    if isinstance(plain, int):
        return plain
    return int(plain) if isinstance(plain, float) and plain.is_integer() else None


def count(name: str, value: Any, least: int) -> int:
    """Return a value as a whole number of at least `least`."""
    result = as_int(value)
    if result is None or not least <= result < _MOST:
        raise OptionError(f"{name} = {short_repr(value)}: give a whole number from {least} to 2**53 - 1")
    return result


def as_json(value: Any, noun: str, *, depth: int = 0) -> Any:
    """Return a value as plain JSON: text, numbers, booleans, None, and lists and mappings of these."""
    plain = scalar(value)
    if isinstance(plain, int) and plain.bit_length() > _LONGEST:
        raise OptionError(f"{noun} cannot be stored: a whole number has more than 300 digits")
    if type(plain) in _SCALARS:
        return plain
    if depth < _DEEPEST:
        if isinstance(plain, Mapping):
            return {_key(name, noun): as_json(part, noun, depth=depth + 1) for name, part in plain.items()}
        if isinstance(plain, list | tuple):
            return [as_json(part, noun, depth=depth + 1) for part in plain]
        if getattr(plain, "ndim", 0) and callable(getattr(plain, "tolist", None)):
            return as_json(plain.tolist(), noun, depth=depth + 1)
    raise OptionError(
        f"{noun} cannot be stored: a part is of type {type(plain).__name__}; JSON has text, numbers, "
        "booleans, None, lists and mappings"
    )


def _key(name: Any, noun: str) -> str:
    plain = scalar(name)
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int | float):
        return str(as_json(plain, noun))
    raise OptionError(f"{noun} cannot be stored: the key {short_repr(name)} is not text")


class PlainState:
    """Base class of objects whose state is plain JSON: `STATE` has the type of each attribute in the state.

    A class adds its attributes to those of its base classes. An attribute with a ``load_state_dict`` must
    exist before a state is restored.

    >>> class Counter(PlainState):
    ...     STATE = {"_best": dict[int, tuple[int, float]], "seen": set[int]}
    >>> counter, other = Counter(), Counter()
    >>> counter._best, counter.seen = {3: (1, 0.5)}, {7, 2}
    >>> counter.state_dict()
    {'best': {'3': (1, 0.5)}, 'seen': [2, 7]}
    >>> other.load_state_dict(counter.state_dict())
    >>> other._best
    {3: (1, 0.5)}
    """

    STATE: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.STATE = {
            name: kind for base in reversed(cls.__mro__) for name, kind in vars(base).get("STATE", {}).items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the state as values that JSON can store; tuples become lists there."""
        return {name.lstrip("_"): _plain(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        for name, kind in self.STATE.items():
            value, part = state[name.lstrip("_")], getattr(self, name, None)
            if (load := getattr(part, "load_state_dict", None)) is not None:
                load(value)
            else:
                setattr(self, name, msgspec.convert(value, kind, str_keys=True))


def _plain(value: Any) -> Any:
    """Return an attribute as JSON can store it; sets are sorted, so that equal states are equal texts."""
    if hasattr(value, "state_dict"):
        return value.state_dict()
    if isinstance(value, set):
        return sorted(value)
    if isinstance(value, list) and value and isinstance(value[0], set):
        return [sorted(part) for part in value]
    return msgspec.to_builtins(value, str_keys=True)
