"""Events with names: what a mapping says, line by line."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["NamedEvent", "NamedLine", "Spans", "named_event", "spans_of"]

Spans = tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
"""Namespaces in order, each with its features' names and values."""

_LARGE = (2 - 2.0**-24) * 2.0**127
"""From here on a number is rounded to infinity."""
_KEYS = ("context", "actions", "chosen", "action", "cost", "probability", "label", "weight", "initial", "tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLine:
    """One line of an event, as `onlineauto.features.event.Line`, but with names.

    Attributes
    ----------
    spans : tuple of (namespace, features)
        Features are pairs of name and value.
    shared : bool
        Whether it is the ``shared`` line.
    tag : str
        Tag, empty if none.
    label : float or None
        Simple label.
    weight, initial : float
        Importance weight, initial prediction.
    costs : tuple of (action, cost, probability)
        Bandit label.
    """

    spans: Spans
    shared: bool = False
    tag: str = ""
    label: float | None = None
    weight: float = 1.0
    initial: float = 0.0
    costs: tuple[tuple[int, float | None, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEvent:
    """One event: its lines, the shared one first if there is one.

    Attributes
    ----------
    lines : tuple of NamedLine
    multiline : bool
        Whether its actions are lines, as ``--cb_adf`` and ``--cb_explore_adf`` take them.
    """

    lines: tuple[NamedLine, ...]
    multiline: bool


def named_event(event: Mapping[str, Any], *, where: str = "event") -> NamedEvent:
    """Make an event of a mapping; see `onlineauto.interop.from_dicts` for its keys.

    Raises
    ------
    InputError
        A key is unknown, or a value is not what belongs there.
    """
    unknown = [key for key in event if key not in _KEYS]
    if unknown:
        near = difflib.get_close_matches(str(unknown[0]), _KEYS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"an event has {', '.join(_KEYS)}"
        raise InputError(f"{where}: unknown key {unknown[0]!r}; {hint}")
    if "actions" in event:
        return _event_of_lines(event, where)
    line = NamedLine(
        spans=spans_of(event.get("context", {}), where),
        tag=str(event.get("tag", "")),
        costs=_costs(event, event.get("action"), where),
        label=_number(event["label"], "label", where) if "label" in event else None,
        weight=_number(event.get("weight", 1), "weight", where),
        initial=_number(event.get("initial", 0), "initial", where),
    )
    if line.weight < 0:
        raise InputError(f"{where}: weight {line.weight} is negative")
    if "label" not in event and not {"weight", "initial"}.isdisjoint(event):
        raise InputError(f"{where}: a weight or an initial prediction, and no label")
    return NamedEvent(lines=(line,), multiline=False)


def _event_of_lines(event: Mapping[str, Any], where: str) -> NamedEvent:
    for key in ("label", "weight", "initial", "action"):
        if key in event:
            instead = "chosen, the place of the chosen one" if key == "action" else "cost"
            raise InputError(f"{where}: {key} is for events without actions; with actions there is {instead}")
    actions: Sequence[Any] = list(event["actions"])
    if not actions:
        raise InputError(f"{where}: actions is empty")
    chosen = event.get("chosen")
    if chosen is not None and not 0 <= chosen < len(actions):
        raise InputError(
            f"{where}: chosen is {chosen}, and there are {len(actions)} actions, numbered from 0"
        )
    costs = _costs(event, chosen, where)
    lines = [
        NamedLine(spans=spans_of(action, where), costs=tuple((0, *cost[1:]) for cost in costs if i == chosen))
        for i, action in enumerate(actions)
    ]
    tag = str(event.get("tag", ""))
    if event.get("context"):
        lines.insert(0, NamedLine(spans=spans_of(event["context"], where), shared=True, tag=tag))
    elif tag:
        first = lines[0]
        lines[0] = NamedLine(spans=first.spans, costs=first.costs, tag=tag)
    return NamedEvent(lines=tuple(lines), multiline=True)


def _costs(event: Mapping[str, Any], action: object, where: str) -> tuple[tuple[int, float, float], ...]:
    """The label of the chosen action, if there is one."""
    cost = event.get("cost")
    if cost is None:
        if event.get("probability") is not None:
            raise InputError(f"{where}: a probability, and no cost")
        return ()
    if action is None or event.get("probability") is None:
        missing = "probability" if action is not None else "chosen" if "actions" in event else "action"
        raise InputError(f"{where}: a cost, and no {missing}")
    probability = _number(event["probability"], "probability", where)
    if not 0 < probability <= 1:
        raise InputError(f"{where}: probability {probability} is not above 0 and at most 1")
    if isinstance(action, bool) or not isinstance(action, int | np.integer) or action < 0:
        raise InputError(f"{where}: the chosen action is {action!r}, not a whole number from 0")
    return ((int(action), _number(cost, "cost", where), probability),)


def _number(value: object, what: str, where: str) -> float:
    """Take a number as the float32 that a text with it would give."""
    if not isinstance(value, float | int | Real):
        raise InputError(f"{where}: {what} {value!r} is not a number")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    number = float(np.float32(number)) if abs(number) < _LARGE else math.inf
    if not math.isfinite(number):
        raise InputError(f"{where}: {what} {value!r} is infinite, NaN or too large")
    return number


def spans_of(features: object, where: str = "event") -> Spans:
    """Namespaces and features of a mapping, or of a list of names.

    >>> spans_of({"user": {"name": "tom", "age": 0.5}, "tags": ["new", "hot"], "old": None})
    (('user', (('name=tom', 1.0), ('age', 0.5))), ('tags', (('new', 1.0), ('hot', 1.0))))
    """
    if not isinstance(features, Mapping):
        raise InputError(f"{where}: features are a mapping of namespaces, not {type(features).__name__}")
    spans = []
    for namespace, value in features.items():
        found = tuple(_features(str(namespace), value, f"{where}: {namespace}"))
        if found:
            spans.append((str(namespace), found))
    return tuple(spans)


def _features(name: str, value: object, where: str) -> Iterator[tuple[str, float]]:
    """Features of a namespace: of a mapping, of a list of names, or the one that is called as it is."""
    if value is None or isinstance(value, str | int | float):  # most are, and to ask this is fast
        yield from _feature(name, value, where)
    elif isinstance(value, Mapping):
        for each, of_it in value.items():
            yield from _feature(str(each), of_it, f"{where}: {each}")
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            if not isinstance(each, str):
                raise InputError(f"{where}: {each!r} in a list is not a name; numbers need names: a mapping")
            yield each, 1.0
    else:
        yield from _feature(name, value, where)


def _feature(name: str, value: object, where: str) -> Iterator[tuple[str, float]]:
    """Name and value of a feature; nothing if it is None, NaN, False or 0."""
    if isinstance(value, str):
        yield f"{name}={value}", 1.0
    elif isinstance(value, bool | np.bool_):
        if value:
            yield name, 1.0
    elif value is not None and not (isinstance(value, float | Real) and math.isnan(value)):
        number = _number(value, "value", where)
        if number:
            yield name, number
