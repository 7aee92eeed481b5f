"""``plain``: convert a value of any library to a built-in one, by the table in ``docs/guides/data.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from onlineauto.errors import InputError, kind_of, short_repr

_MISSING_TYPES = frozenset({"NAType", "NaTType"})
"""Types of ``pandas.NA`` and ``pandas.NaT``, by name, since pandas need not be installed."""
_SCALARS = frozenset({str, int, float, bool, type(None)})
_DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


def plain(value: object) -> Any:
    """Return a value as a built-in one: None, a truth value, a string, an int or a float.

    None, NaN, NaT, ``pandas.NA`` and a masked element are missing: None. Scalars of NumPy, pandas, polars and
    arrow, zero-dimensional arrays, Decimal and Fraction are numbers. A number too large for a float is
    infinite. Sequences, mappings and all other values are returned unchanged.

    >>> import numpy
    >>> plain(numpy.float32(0.5)), plain(numpy.array(3)), plain(Decimal("1.5")), plain(float("nan"))
    (0.5, 3, 1.5, None)
    """
    kind = type(value)
    if kind is str or kind is bool or kind is int or kind is list or value is None:
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.generic | np.ndarray):
        return _of_numpy(value)
    if isinstance(value, Decimal):
        return None if value.is_nan() else float(value)
    if isinstance(value, Real):
        return _as_float(value)
    if kind.__name__ in _MISSING_TYPES:
        return None
    if hasattr(value, "as_py"):  # a scalar of arrow
        return plain(value.as_py())
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a zero-dimensional tensor
        return plain(value.item())
    return value


def _of_numpy(value: Any) -> Any:
    """Return a NumPy scalar or 0-d array as a built-in value; return any other array unchanged."""
    if value is np.ma.masked:
        return None
    if value.ndim:
        return value
    if value.dtype.kind in "mM":
        return None if np.isnat(value) else value
    if value.dtype.kind == "f":
        return plain(float(value))
    item = value.item()
    return value if type(item) is type(value) else plain(item)


def _as_float(value: Any) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return None if math.isnan(number) else number


def as_list(value: Any) -> Any:
    """Return an array of numbers of any library as a list; return any other value unchanged.

    >>> as_list(np.array([0.5, 2], np.float16)), as_list("abc")
    ([0.5, 2.0], 'abc')
    """
    kind = type(value)
    if kind is str or kind is list or not hasattr(kind, "__array__") or getattr(value, "ndim", 1) != 1:
        return value
    with suppress(TypeError, ValueError, RuntimeError):  # what cannot be an array is read by elements
        array = value if isinstance(value, np.ndarray) else np.asarray(value)
        if array.ndim == 1 and array.dtype.kind in "fiub":
            return array.tolist()
    return value


def as_lists(features: Any) -> Any:
    """Return features with arrays as lists, and lists within mappings as namespaces; else the same object.

    >>> as_lists({"user": {"age": 30, "likes": np.array([0.5, 2])}, "page": 3})
    {'user': {'age': 30}, 'likes': [0.5, 2.0], 'page': 3}
    """
    if type(features) is not dict or _SCALARS.issuperset(map(type, features.values())):
        return features
    result, changed = {}, False
    for name, value in features.items():
        result[name] = value
        if type(value) is dict:
            items = {key: as_list(item) for key, item in value.items()}
            lists = {key: item for key, item in items.items() if type(item) is list}
            if lists and features.keys().isdisjoint(lists) and result.keys().isdisjoint(lists):
                result[name] = {key: item for key, item in value.items() if key not in lists}
                result |= lists
                changed = True
        elif (listed := as_list(value)) is not value:
            result[name] = listed
            changed = True
    return result if changed else features


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, NaT, ``pandas.NA`` or masked.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0)
    (True, True, False)
    """
    return value is None or plain(value) is None


def is_sequence(value: object) -> bool:
    """Return whether a value is a sequence of elements, but not a string or a mapping."""
    if getattr(value, "ndim", 1) != 1:  # a matrix, or a frame
        return False
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | bytearray | Mapping)


def whole_number(value: object) -> int | None:
    """Return a whole number of any library, or a float without a fraction, as an int; None for other values.

    >>> whole_number(2.0), whole_number(True), whole_number("2")
    (2, None, None)
    """
    number = plain(value)
    if isinstance(number, float) and number.is_integer():
        return int(number)
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def plain_tree(value: object, where: str) -> Any:
    """Return features with all values converted to built-in values of JSON; missing values are None.

    >>> plain_tree({"age": Decimal(30), "tags": ("new", float("nan"))}, "context")
    {'age': 30.0, 'tags': ['new', None]}
    """
    builtin = as_list(plain(value))
    if type(builtin) is list and {*map(type, builtin)} == {float} and math.isfinite(sum(builtin)):
        return builtin
    if isinstance(builtin, Mapping):
        return {str(name): plain_tree(item, f"{where}: {name}") for name, item in builtin.items()}
    if is_sequence(builtin):
        return [plain_tree(item, f"{where}: {index}") for index, item in enumerate(builtin)]
    if builtin is not None and not isinstance(builtin, str | int | float):
        raise invalid_feature_error(builtin, where)
    if isinstance(builtin, float) and math.isinf(builtin):
        raise InputError(f"{where}: value {short_repr(value)} is infinite")
    return builtin


def invalid_feature_error(value: object, where: str) -> InputError:
    """Return the error for a value that cannot be a feature, with the remedy."""
    if isinstance(value, _DATES):
        return InputError(
            f"{where}: {short_repr(value)} is a date or a time, which is no feature: give what matters of it "
            "as numbers or strings, such as the weekday and the hour"
        )
    if isinstance(value, bytes | bytearray):
        return InputError(
            f"{where}: {short_repr(value)} is bytes, which are no feature: decode them to a string"
        )
    if is_sequence(value):
        return InputError(
            f"{where}: {short_repr(value)} in a list: a list has numbers, names and mappings, and no lists"
        )
    if getattr(value, "ndim", 1) > 1:
        return InputError(f"{where}: an array of {value.ndim} dimensions: give one, as by .ravel()")  # type: ignore[attr-defined]
    return InputError(
        f"{where}: value {short_repr(value)} is {kind_of(value)}, which is no feature: features are numbers, "
        "strings, truth values, lists and mappings"
    )
