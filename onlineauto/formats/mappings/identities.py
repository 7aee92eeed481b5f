"""Identities: columns whose values are names whatever their type, such as ids of actions and categories.

An identity is written ``namespace^column``. Its values have one spelling at every door: 1, 1.0 and "1" are
the name ``1``, and True is the name ``True``.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from onlineauto.formats.mappings.values import is_sequence, plain

Identities: TypeAlias = frozenset[str]
"""Identities of a model, each as `identity` writes it."""

MOST_NUMBERS = 4096
"""Number of columns from which on no more are recorded as numbers, and no column becomes an identity."""

_WHOLE = 2.0**53
"""Floats below this one are exact if they are whole."""
_NUMBERS = frozenset({bool, int, float})
"""Types that are found to be numbers sooner than by `Real`."""
_NO_NUMBERS = frozenset({str, list, type(None)})


def identity(namespace: object, column: object) -> str:
    """Return a column of a namespace as the option ``--name_columns`` writes it.

    >>> identity("user", "id")
    'user^id'
    """
    return f"{namespace}^{column}"


def spelling(value: object) -> str | None:
    """Return the name of a value of an identity, or None if the value is missing.

    A number that is not whole is spelled as a float32.

    >>> spelling(1), spelling(1.0), spelling(0.1), spelling(np.float32(0.1)), spelling(True), spelling("a")
    ('1', '1', '0.1', '0.1', 'True', 'a')
    """
    builtin = plain(value)
    if builtin is None or isinstance(builtin, str):
        return builtin
    if isinstance(builtin, float):
        is_whole = builtin.is_integer() and abs(builtin) < _WHOLE
        with np.errstate(over="ignore"):
            return str(int(builtin) if is_whole else np.float32(builtin))
    return str(builtin)


def named(features: Any, identities: Identities) -> Any:
    """Return features in which the values of identities are names; without such values, the same object.

    >>> named({"user": {"id": 7, "age": 30}, "page": 3}, frozenset({"user^id"}))
    {'user': {'id': '7', 'age': 30}, 'page': 3}
    """
    if not identities or not isinstance(features, Mapping):
        return features
    changed = {}
    for name, value in features.items():
        renamed = _renamed(name, name, value, identities)
        if renamed is not value:
            changed[name] = renamed
    return {**features, **changed} if changed else features


def name_values(event: Mapping[str, Any], identities: Identities) -> Mapping[str, Any]:
    """Return an event of `from_dicts` in which the values of identities are names."""
    if not identities or not isinstance(event, Mapping):
        return event
    changed = dict(event)
    if is_sequence(event.get("actions")):
        changed["actions"] = [named(action, identities) for action in event["actions"]]
    if is_sequence(event.get("slots")):
        changed["slots"] = [_slot(slot, identities) for slot in event["slots"]]
    if "context" in event:
        changed["context"] = named(event["context"], identities)
    return changed


def _slot(slot: Any, identities: Identities) -> Any:
    has_context = isinstance(slot, Mapping) and "context" in slot
    return {**slot, "context": named(slot["context"], identities)} if has_context else slot


def numbers_in(features: Any, namespace: object = ...) -> list[str]:
    """Return the columns of features that have numbers or truth values, each as `identity` writes it.

    `namespace` is that of the features of a nested mapping.

    >>> numbers_in({"user": {"id": 7, "name": "tom"}, "page": 3.5, "words": [1]})
    ['user^id', 'page^page']
    """
    columns = []
    for name, value in features.items() if type(features) is dict or isinstance(features, Mapping) else ():
        kind = type(value)
        if kind is str:
            continue
        if kind is dict or (kind not in _NUMBERS and isinstance(value, Mapping)):
            columns += numbers_in(value, name)
        elif kind in _NUMBERS or isinstance(value, Real) or isinstance(plain(value), Real):
            columns.append(identity(name if namespace is ... else namespace, name))
    return columns


def has_new_numbers(features: Any, noted: set[tuple[str, str, type]]) -> bool:
    """Return whether `numbers_in` may list columns that are not `noted`, by namespace, and note these."""
    if type(features) is not dict:
        return True
    new = False
    for name, value in features.items():
        kind = type(value)
        if kind is dict:
            for column, item in value.items():
                kind = type(item)
                if kind is not str and (name, column, kind) not in noted:
                    new |= _notes(name, column, kind, noted)
        elif kind is not str and (name, name, kind) not in noted:
            new |= _notes(name, name, kind, noted)
    return new


def _notes(name: object, column: object, kind: type, noted: set[tuple[str, str, type]]) -> bool:
    """Return whether values of a type may be numbers; note the column if they surely are."""
    if kind in _NUMBERS and type(name) is str and type(column) is str:
        noted.update((name, column, number) for number in _NUMBERS)
    return kind not in _NO_NUMBERS


def numbers_in_event(event: Mapping[str, Any]) -> list[str]:
    """Return the columns of an event of `from_dicts` that have numbers or truth values."""
    slots = [slot["context"] for slot in event.get("slots", ()) if "context" in slot]
    parts = (event.get("context"), *event.get("actions", ()), *slots)
    return [column for features in parts for column in numbers_in(features)]


def _renamed(namespace: object, name: object, value: Any, identities: Identities) -> Any:
    """Return the value called `name` in a namespace; mappings and lists in it are namespaces of that name."""
    if type(value) is str or value is None:
        return value
    if isinstance(value, Mapping):
        changed = {}
        for key, item in value.items():
            renamed = _renamed(name, key, item, identities)
            if renamed is not item:
                changed[key] = renamed
        return {**value, **changed} if changed else value
    if isinstance(value, list | tuple):
        return [
            _renamed(name, name, item, identities) if isinstance(item, Mapping) else item for item in value
        ]
    if identity(namespace, name) not in identities:
        return value
    return spelling(value) if isinstance(plain(value), Real) else value
