"""Read one value of one option from text or from Python, and check its bounds."""

from __future__ import annotations

import math
import os
import re
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final

from onlineauto.errors import OptionError, short_repr

if TYPE_CHECKING:
    from onlineauto.options.option import Option, Scalar

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,999}")  # Python reads a few thousand digits
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def from_text(option: Option, text: str) -> Scalar:
    """Return the value of `text` on the command line."""
    if option.kind is int and _INTEGER.fullmatch(text):
        return _check_value(option, int(text), text)
    if option.kind is float and _NUMBER.fullmatch(text):
        return _check_value(option, float(text), text)
    if option.kind is str and text:
        return _check_value(option, text, text)
    raise _invalid(option, repr(text))


def from_python(option: Option, value: object) -> Scalar:
    """Return the value of a Python argument: a number of any library, a path or a word.

    Instead of a word, a number is accepted, too: ``progress=1000`` is ``progress="1000"``. For a list, a list
    or tuple is accepted: ``cost_range=(0, 1)`` is ``cost_range="0,1"``. True is the flag without a number:
    ``automl=True`` is ``automl=4``.
    """
    if option.kind is bool or isinstance(value, bool):
        if option.kind is bool and isinstance(value, bool):
            return value
        if value is True and option.const is not None:
            return option.const
    elif isinstance(value, os.PathLike) and option.kind is str:
        return from_text(option, os.fsdecode(value))
    elif isinstance(value, str) and option.kind is str:
        return from_text(option, value)
    elif (text := _text(option, value)) is not None:
        return from_text(option, text)
    raise _invalid(option, short_repr(value))


def _text(option: Option, value: object) -> str | None:
    """Return numbers as on the command line; None for other values, and for numbers with too many digits."""
    try:
        if isinstance(value, list | tuple) and option.listed:
            return ",".join(map(str, value))
        if isinstance(value, Integral):
            return str(int(value))
        if isinstance(value, Real) and option.kind is not int:
            return repr(float(value))
    except (ValueError, OverflowError):
        pass
    return None


def to_text(value: Scalar) -> str:
    """Return a value as text that `from_text` reads back as the same value."""
    return repr(value) if isinstance(value, float) else str(value)


def is_within(option: Option, value: float) -> bool:
    """Return whether a number is finite and within the bounds of an option."""
    return (
        math.isfinite(value)
        and (option.minimum is None or value >= option.minimum)
        and (option.maximum is None or value <= option.maximum)
        and (option.above is None or value > option.above)
        and (option.below is None or value < option.below)
    )


def valid_values(option: Option) -> str:
    """Return a description of an option's valid values, such as ``a number from 0 to 1``."""
    if option.choices:
        return "one of " + ", ".join(option.choices)
    if option.listed:
        return f"{option.metavar}, separated by commas"
    if option.kind is str:
        return "a word that is not empty"
    if option.kind is bool:
        return "True or False"
    noun = "a whole number" if option.kind is int else "a number"
    low, high = option.minimum, option.maximum
    if low is not None and high is not None:
        return f"{noun} from {_limit(low)} to {_limit(high)}"
    limits = [("of at least", low), ("above", option.above), ("of at most", high), ("below", option.below)]
    return " ".join(
        [noun, " and ".join(f"{word} {_limit(limit)}" for word, limit in limits if limit is not None)]
    ).strip()


def _check_value(option: Option, value: Scalar, text: str) -> Scalar:
    """Return a value after checking choices and bounds; a synonym is replaced by its choice."""
    value = dict(option.synonyms).get(text, value)
    chosen = not option.choices or value in option.choices
    if not chosen or not (isinstance(value, str) or is_within(option, value)):
        raise _invalid(option, text if len(text) <= 80 else f"{text[:77]}...")
    return value


def _limit(limit: float) -> str:
    """Return a bound as text; a bound 2^n - 1 of many bits is written like ``2^63 - 1``."""
    bits = int(limit).bit_length()
    return f"2^{bits} - 1" if bits > 30 and limit == 2**bits - 1 else str(limit)


def _invalid(option: Option, text: str) -> OptionError:
    reason = f" ({option.because})" if option.because else ""
    return OptionError(f"{option.flag} cannot be {text}; it takes {valid_values(option)}{reason}")
