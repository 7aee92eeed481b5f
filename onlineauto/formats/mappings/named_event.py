"""``NamedEvent``: convert a mapping to an event with names of features."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from struct import Struct, pack
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError, short_repr
from onlineauto.features.block import UNLABELLED, Block
from onlineauto.features.event import LabelledLine
from onlineauto.features.records import COST, FEATURE, LEAST_VECTOR, LINE, SPAN
from onlineauto.formats.mappings.encoded_event import KEYS
from onlineauto.formats.mappings.event_kernels import LARGE
from onlineauto.formats.mappings.values import (
    as_list,
    invalid_feature_error,
    is_missing,
    is_sequence,
    plain,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from onlineauto.features.records import Records
    from onlineauto.formats.mappings.name_hashes import NameHashes

Spans = tuple[tuple[str, tuple[tuple[str | int, float], ...]], ...]
"""Namespaces in order, each with the names and values of its features; a number in a list has its index."""

_SMALL = 2.0**-126
"""The smallest normal float32: numbers from it on have the full precision."""
_WHOLE = 1 << 24
"""Whole numbers up to this one are exact in float32."""
_FLOAT32 = Struct("f")
_MOST_NESTED = 250
"""Maximum nesting of mappings and lists; JSON allows 256 nested objects and arrays."""
_KEYS = (*KEYS, "tag", "slots")
_SLOT_KEYS = ("context", "chosen", "cost", "probability", "only", "tag")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLine(LabelledLine):
    """One line of an event, like `onlineauto.features.event.Line`, but with names."""

    spans: Spans  # Features are pairs of name and value.


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedEvent:
    """One event: its lines, with the shared line first if there is one."""

    lines: tuple[NamedLine, ...]
    multiline: bool  # True if actions are lines, as for ``--cb_adf`` and ``--cb_explore_adf``.
    slots: bool = False  # True for an event of ``--ccb_explore_adf``: a shared line, actions, slots.


def named_event(event: Mapping[str, Any], *, where: str = "event") -> NamedEvent:
    """Return the event of a mapping; `onlineauto.interop.from_dicts` documents its keys."""
    _refuse_unknown(event, _KEYS, where, "an event")
    if "actions" in event:
        return _event_of_lines(event, where)
    if "slots" in event:
        raise InputError(f"{where}: slots without actions to choose from")
    line = NamedLine(
        spans=spans_of(event.get("context", {}), where),
        tag=str(event.get("tag", "")),
        costs=_costs(event, "action", where),
        label=None if is_missing(event.get("label")) else _number(event["label"], "label", where),
        weight=check_weight(event.get("weight", 1), where),
        initial=_number(event.get("initial", 0), "initial", where),
    )
    if "label" not in event and not {"weight", "initial"}.isdisjoint(event):
        raise InputError(f"{where}: a weight or an initial prediction without a label")
    return NamedEvent(lines=(line,), multiline=False)


def check_weight(weight: object, where: str) -> float:
    """Return an importance weight as a float32."""
    number = _number(weight, "weight", where)
    if number < 0:
        raise InputError(f"{where}: weight {short_repr(weight)} is negative")
    return number


def _refuse_unknown(mapping: Mapping[str, Any], keys: tuple[str, ...], where: str, noun: str) -> None:
    unknown = [key for key in mapping if key not in keys]
    if unknown:
        near = difflib.get_close_matches(str(unknown[0]), keys, n=1)
        hint = f"did you mean {near[0]}?" if near else f"{noun} has {', '.join(keys)}"
        raise InputError(f"{where}: unknown key {short_repr(unknown[0])}; {hint}")


def _event_of_lines(event: Mapping[str, Any], where: str) -> NamedEvent:
    for key in ("label", "initial", "action"):
        if key in event:
            instead = "chosen, the index of the chosen one" if key == "action" else "cost"
            raise InputError(f"{where}: {key} is for events without actions; with actions there is {instead}")
    if not is_sequence(event["actions"]):
        type_name = type(event["actions"]).__name__
        raise InputError(f"{where}: actions are a list of mappings, not {type_name}")
    actions: Sequence[Any] = list(event["actions"])
    if not actions:
        raise InputError(f"{where}: actions is empty")
    chosen, costs = _find_chosen_action(event, len(actions), where)
    lines = [
        NamedLine(
            spans=spans_of(action, f"{where}: action {i}"),
            costs=tuple((0, *cost[1:]) for cost in costs if i == chosen),
        )
        for i, action in enumerate(actions)
    ]
    tag = str(event.get("tag", ""))
    if event.get("context") or "slots" in event:
        lines.insert(0, NamedLine(spans=spans_of(event.get("context", {}), where), shared=True, tag=tag))
    elif tag:
        first = lines[0]
        lines[0] = NamedLine(spans=first.spans, costs=first.costs, tag=tag)
    if "slots" in event:
        if chosen is not None:
            raise InputError(f"{where}: chosen is for events without slots; each slot has its own")
        lines += _slots(event["slots"], len(actions), where)
    if "weight" in event:
        weight = check_weight(event["weight"], where)
        lines = [replace(line, weight=weight) for line in lines]
    return NamedEvent(lines=tuple(lines), multiline=True, slots="slots" in event)


def _find_chosen_action(
    event: Mapping[str, Any], n: int, where: str
) -> tuple[Any, tuple[tuple[int, float, float], ...]]:
    """Return the chosen one of `n` actions, or None, and its label."""
    position = event.get("chosen")
    if is_missing(position):
        return None, _costs(event, "chosen", where)
    chosen = whole_number(position)
    if chosen is None or not 0 <= chosen < n:
        raise InputError(
            f"{where}: chosen is {short_repr(position)}, and there are {n} actions, numbered from 0"
        )
    return chosen, _costs(event, "chosen", where)


def _slots(slots: Iterable[Mapping[str, Any]], n_actions: int, where: str) -> Iterator[NamedLine]:
    """Yield the lines of an event's slots; refuse a logged action that an earlier slot has."""
    if not is_sequence(slots):
        raise InputError(f"{where}: slots are a list of mappings, not {type(slots).__name__}")
    slots, used = list(slots), set[int]()
    if len(slots) > n_actions:
        raise InputError(f"{where}: {len(slots)} slots, and {n_actions} actions to choose from")
    for number, slot in enumerate(slots):
        here = f"{where}: slot {number}"
        if not isinstance(slot, Mapping):
            raise InputError(f"{here}: a slot is a mapping, not {type(slot).__name__}")
        _refuse_unknown(slot, _SLOT_KEYS, here, "a slot")
        chosen, costs = _find_chosen_action(slot, n_actions, here)
        allowed = () if is_missing(slot.get("only")) else slot["only"]
        only = tuple(map(whole_number, allowed)) if is_sequence(allowed) else (None,)
        if not {*only} <= {*range(n_actions)}:
            raise InputError(f"{here}: only must list some of the {n_actions} actions, numbered from 0")
        if chosen in used or (costs and only and chosen not in only):
            raise InputError(f"{here}: chosen is {chosen}, an action that this slot cannot have")
        used |= {chosen} if costs else set()
        yield NamedLine(
            spans=spans_of(slot.get("context", {}), here),
            slot=True,
            tag=str(slot.get("tag", "")),
            costs=(*costs, *((action, None, -math.inf) for action in only if action is not None)),
        )


def _costs(event: Mapping[str, Any], key: str, where: str) -> tuple[tuple[int, float, float], ...]:
    """Return the label of the action in `key`, empty if the action, the cost or the probability is missing.

    If a value is missing although another key requires it, the key must be present with the value None.
    """
    position, cost = event.get(key), event.get("cost")
    if is_missing(cost):
        if "cost" not in event and not is_missing(event.get("probability")):
            raise InputError(f"{where}: a probability without a cost")
        return ()
    for name in (key, "probability"):
        if name not in event:
            raise InputError(f"{where}: a cost without {name}")
    if is_missing(position) or is_missing(event["probability"]):
        return ()
    probability = _number(event["probability"], "probability", where)
    if not 0 < probability <= 1:
        raise InputError(f"{where}: {invalid_probability(event['probability'])}")
    action = whole_number(position)
    if action is None or action < 0:
        raise InputError(f"{where}: the chosen action is {short_repr(position)}, not a whole number from 0")
    if action >= 1 << 32:
        raise InputError(f"{where}: the chosen action is {short_repr(action)}, and the largest is 2^32 - 1")
    return ((action, _number(cost, "cost", where), probability),)


def invalid_probability(value: object) -> str:
    """Return a message about the invalid probability of a logged action.

    >>> invalid_probability(1.5)
    'probability 1.5 is not above 0 and at most 1'
    """
    if plain(value) is not None and 0 < plain(value) <= 1:
        return f"probability {value} is too small for a float32: the smallest is 1.4e-45"
    return f"probability {value} is not above 0 and at most 1"


def _as_float32(number: float) -> float:
    """Return the nearest float32, as a float."""
    rounded: float = _FLOAT32.unpack(_FLOAT32.pack(number))[0]
    return rounded


def _number(value: object, noun: str, where: str) -> float:
    """Return a number as the float32 that its text would be read as; truth values are 0 and 1."""
    number = plain(value)
    if not isinstance(number, float | int):
        wrong = "missing" if number is None else "not a number"
        raise InputError(f"{where}: {noun} {short_repr(value)} is {wrong}")
    try:
        number = float(number)
    except OverflowError:  # a whole number with hundreds of digits
        number = math.inf
    number = _as_float32(number) if abs(number) < LARGE else math.inf
    if not math.isfinite(number):
        raise InputError(f"{where}: {noun} {short_repr(value)} is infinite, NaN or too large for a float32")
    return number


def spans_of(features: object, where: str = "event") -> Spans:
    """Return the namespaces of a mapping, each with its features.

    >>> spans_of({"user": {"name": "tom", "age": 0.5}, "tags": ["new", "hot"], "old": None})
    (('user', (('name=tom', 1.0), ('age', 0.5))), ('tags', (('new', 1.0), ('hot', 1.0))))
    >>> spans_of({"text": {"words": 2, "vector": [0.5, None, -1]}})
    (('text', (('words', 2.0),)), ('vector', ((0, 0.5), (2, -1.0))))
    """
    if not isinstance(features, Mapping):
        raise InputError(f"{where}: features are a mapping of namespaces, not {type(features).__name__}")
    spans: dict[str, list[tuple[str | int, float]]] = {}
    for namespace, value in features.items():
        name, listed = str(namespace), as_list(value)
        plain_features = _usual_features(namespace, listed)
        if plain_features is None:
            for inner, feature, number in _features(name, listed, f"{where}: {name}", 0):
                spans.setdefault(inner, []).append((feature, number))
        elif plain_features:
            spans.setdefault(name, []).extend(plain_features)
    settled = ((name, _without_zeros(named)) for name, named in spans.items())
    return tuple((name, named) for name, named in settled if named)


def _without_zeros(named: list[tuple[str | int, float]]) -> tuple[tuple[str | int, float], ...]:
    """Return features without zeros, unless they are a vector."""
    return tuple(named if vector_of(named) else [feature for feature in named if feature[1]])


def vector_of(features: Sequence[tuple[str | int, float]], origin: int = 0) -> list[float] | None:
    """Return the numbers of features that are a vector, named by numbers from `origin`; None for others."""
    n = len(features)
    if n < LEAST_VECTOR or [name for name, _ in features] != [(origin + i) % 2**32 for i in range(n)]:
        return None
    return [number for _, number in features]


def vector_in(value: object) -> list[float] | None:
    """Return the float32 numbers of a list that is a vector, 0 for NaN; None for other values.

    A list with other elements than finite numbers is left to `spans_of`, too.
    """
    if not isinstance(value, list | tuple) or len(value) < LEAST_VECTOR:
        return None
    with suppress(ValueError):  # lists of different lengths are no array
        array = np.asarray(value)
        if array.ndim == 1 and array.dtype.kind in "fiub":
            numbers = np.nan_to_num(array.astype(np.float64), posinf=math.inf, neginf=-math.inf)
            if np.abs(numbers).max() < LARGE:
                return numbers.astype(np.float32).tolist()  # type: ignore[no-any-return]
    return None


def _usual_features(name: object, value: object) -> tuple[tuple[str | int, float], ...] | None:
    """Return the features of texts, ordinary numbers and vectors, named by str or index; None for others.

    Most values are of these types, for which this is several times as fast as `_features`.
    """
    if type(value) is not dict and (vector := vector_in(value)) is not None:
        return tuple(enumerate(vector))
    features: Mapping[Any, Any] = value if type(value) is dict else {name: value}
    result: list[tuple[str | int, float]] = []
    for feature, of_it in features.items():
        kind = type(of_it)
        if type(feature) is not str:
            return None
        if kind is str:
            result.append((f"{feature}={of_it}", 1.0))
        elif kind is float and _SMALL < abs(of_it) < LARGE:
            result.append((feature, _as_float32(of_it)))
        elif kind is int and 0 < abs(of_it) < _WHOLE:
            result.append((feature, float(of_it)))
        else:
            return None
    return tuple(result)


def _features(name: str, value: object, where: str, depth: int) -> Iterator[tuple[str, str | int, float]]:
    """Yield namespace, name and value of each feature of a value, whose mappings and lists are namespaces."""
    if depth > _MOST_NESTED:
        raise InputError(f"{where[:200]}: more than {_MOST_NESTED} nested mappings and lists")
    builtin = plain(value)
    if isinstance(builtin, Mapping):
        for key, inner in builtin.items():
            feature, of_it = str(key), as_list(plain(inner))
            here = where if depth == 0 and feature == name else f"{where}: {key}"  # not `c: c` of a column c
            if isinstance(of_it, Mapping) or is_sequence(of_it):
                yield from _features(feature, of_it, here, depth + 1)
            else:
                yield from _feature(name, feature, inner, here)
    elif is_sequence(builtin):
        yield from _elements(name, builtin, where, depth)
    else:
        yield from _feature(name, name, value, where)


def _elements(
    name: str, values: Iterable[Any], where: str, depth: int
) -> Iterator[tuple[str, str | int, float]]:
    """Yield the features of a list: numbers by index, zeros too, names, and features of unnamed mappings."""
    index = 0
    for value in values:
        item, here = plain(value), f"{where}: {index}"
        if isinstance(item, Mapping):
            yield from _features(name, item, here, depth + 1)
            continue
        if isinstance(item, str):
            yield name, item, 1.0
        elif isinstance(values, AbstractSet):
            raise InputError(f"{here}: {short_repr(item)} in a set, which has no order: give a list")
        else:
            yield name, index, next((number for _, _, number in _feature(name, "", value, here)), 0.0)
        index += 1


def _feature(namespace: str, name: str, value: object, where: str) -> Iterator[tuple[str, str, float]]:
    """Yield the feature of a value, unless the value is missing, False or 0."""
    builtin = plain(value)
    if builtin is None or builtin is False:
        return
    if builtin is True:
        yield namespace, name, 1.0
    elif isinstance(builtin, str):
        yield namespace, f"{name}={builtin}", 1.0
    elif isinstance(builtin, int | float):
        number = _number(value, "value", where)
        if number:
            yield namespace, name, number
    else:
        raise invalid_feature_error(builtin, where)


def named_block(events: Sequence[NamedEvent], names: NameHashes, *, first: int = 0) -> Block:
    """Return a block of events with names; all lines of an event have the event's number."""
    lines: list[Any] = []
    costs: list[Any] = []
    spans: list[Any] = []
    features: list[Any] = []
    tag = b""
    starts = [0]
    n_lines = n_spans = n_features = n_costs = 0
    for number, event in enumerate(events, first + 1):
        for line in event.lines:
            label = UNLABELLED if line.label is None else line.label
            lines += number, n_spans, n_costs, len(tag)
            lines += label, line.weight, line.initial, line.shared, line.slot
            tag += line.tag.encode()
            for action, cost, probability in line.costs:
                costs += (action, UNLABELLED if cost is None else cost, probability)
                n_costs += 1
            for name, named in line.spans:
                namespace, before = names.namespace(name), n_features
                for feature, value in named:
                    features += (names.feature(feature, namespace), value)
                n_features += len(named)
                spans += (before, namespace)
                n_spans += 1
        n_lines += len(event.lines)
        starts.append(n_lines)
    lines += 0, n_spans, n_costs, len(tag), 0.0, 0.0, 0.0, False, False
    spans += n_features, 0
    return Block(
        event_start=np.array(starts, np.int64),
        lines=_records(LINE, "4q3f2?2x", n_lines + 1, lines),
        costs=_records(COST, "I2f", n_costs, costs),
        spans=_records(SPAN, "qi4x", n_spans + 1, spans),
        features=_records(FEATURE, "If", n_features, features),
        tag=np.frombuffer(tag, np.uint8),
        namespaces=names.namespaces,
        rules=names.rules,
        objects="event",
    )


def _records(dtype: np.dtype[Any], form: str, n: int, values: list[Any]) -> Records:
    """Return `n` records of consecutive values with the dtype's `form`; faster than NumPy for a few."""
    return np.frombuffer(bytearray(pack(f"={n * form}", *values)), dtype)
