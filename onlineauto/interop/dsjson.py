"""``event_dsjson``, ``write_dsjson``: events as lines of a decision-service log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Raw

from onlineauto.errors import InputError
from onlineauto.features.event import Event
from onlineauto.formats.decisions.dsjson import decision_line, label_of
from onlineauto.formats.explicit_json import members_of, number_of, object_of, quoted
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import NamedEvent, named_event
from onlineauto.interop.vw_text import write_events

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from onlineauto.features.event import Line
    from onlineauto.formats.mappings.named_event import NamedLine

_ONE = np.float32(1)


def event_dsjson(
    event: Mapping[str, Any] | NamedEvent | Event,
    *,
    event_id: str = "",
    timestamp: str = "",
    hash_seed: int = 0,
) -> str:
    r"""Return an event as a line of a decision-service log, which ``--dsjson`` reads as the same event.

    A name that JSON readers would not accept for a feature is written as the number with the same hash: a
    name that begins with ``_``, is empty, or contains a NUL. So is every name of an `Event`, which has only
    hashes; see `event_text`. An event without a shared line is read with an empty one. A weight above 1 is
    written as ``pdrop``: exactly if it was read from a ``pdrop``, else the nearest one. ``NameColumns`` says
    that the names are those of dicts.

    Parameters
    ----------
    event : mapping, NamedEvent or Event
        An event with actions, as for `event_text`.
    event_id, timestamp : str
        ``EventId`` and ``Timestamp``, if not empty.
    hash_seed : int
        ``--hash_seed`` of the reader.

    Raises
    ------
    InputError
        If the event has no actions, more than one label, a weight below 1, or a name that cannot be written.

    Examples
    --------
    >>> event = {"context": {"user": {"age": 0.5}}, "actions": [{"topic": "sports"}, {"topic": "art"}]}
    >>> print(event_dsjson(event | {"chosen": 1, "cost": -1, "probability": 0.25}).replace('"c":', '\n"c":'))
    {"NameColumns":[],"_label_cost":-1.0,"_label_probability":0.25,"_label_Action":2,"_labelIndex":1,"a":[2,1],
    "c":{"user":{"age":0.5},"_multi":[{"topic":{"topic=sports":1.0}},{"topic":{"topic=art":1.0}}]}}
    <BLANKLINE>
    """
    of_dicts = not isinstance(event, NamedEvent | Event)
    if not isinstance(event, NamedEvent | Event):
        event = named_event(event)
    lines: list[NamedLine | Line] = list(event.lines)
    if isinstance(event, NamedEvent) and not event.multiline:
        raise InputError("event: it has no actions to choose from")
    names = NameHashes(hash_seed=hash_seed)
    shared = lines.pop(0) if lines and lines[0].shared else None
    slots = [line for line in lines if line.slot]
    actions = lines[: len(lines) - len(slots)]
    context = [] if shared is None else list(members_of(shared, names, hash_seed))
    objects = [object_of(members_of(action, names, hash_seed)) for action in actions]
    context.append(f'"_multi":[{",".join(objects)}]')
    objects = [object_of([*_allowed_actions(slot), *members_of(slot, names, hash_seed)]) for slot in slots]
    context += [f'"_slots":[{",".join(objects)}]'] * bool(slots)
    members: dict[str, Any] = {"NameColumns": []} if of_dicts else {}
    members |= _label(actions) | _drop(event.lines)
    for name, value in (("EventId", event_id), ("Timestamp", timestamp)):
        if value:
            members[name] = Raw(quoted(value))
    members["a"] = _ranking(actions)
    line = decision_line(members, object_of(context).encode()).decode()
    return object_of([line[1:-1], *_outcomes(slots)]) + "\n"


def write_dsjson(
    events: Iterable[Mapping[str, Any] | NamedEvent | Event],
    path: str | os.PathLike[str],
    *,
    hash_seed: int = 0,
) -> int:
    """Write events to a decision-service log, with their index as ``EventId``; return their number.

    The file appears once it is completely on disk.

    Raises
    ------
    InputError
        If an event cannot be written; the message has its number, counted from 0.
    OSError
        If the file cannot be written.
    """
    return write_events(
        events, path, lambda event, n: event_dsjson(event, event_id=str(n), hash_seed=hash_seed)
    )


def _labelled_actions(lines: list[NamedLine | Line]) -> list[int]:
    """Return the indices of the actions that have a label."""
    return [i for i, line in enumerate(lines) if any(cost is not None for _, cost, _ in line.costs)]


def _ranking(lines: list[NamedLine | Line]) -> list[int]:
    """Return the actions, counted from 1, with the logged action first."""
    first = _labelled_actions(lines)[:1]
    return [each + 1 for each in (*first, *(i for i in range(len(lines)) if i not in first))]


def _label(lines: list[NamedLine | Line]) -> dict[str, Any]:
    """Return the members that label an event; none if no action has a label."""
    chosen = _labelled_actions(lines)
    if not chosen:
        return {}
    costs = lines[chosen[0]].costs
    if len(chosen) > 1 or len(costs) > 1:
        raise InputError("event: it has more than one label, but a decision has only one")
    _, cost, probability = costs[0]
    if not probability:
        raise InputError("event: its label has no probability, which a decision requires")
    assert cost is not None
    return label_of(Raw(number_of(cost)), Raw(number_of(probability)), chosen[0])


def _drop(lines: Iterable[NamedLine | Line]) -> dict[str, Any]:
    """Return the share of such events that was not logged, if the event represents several."""
    weights = {float(np.float32(line.weight)) for line in lines}
    if len(weights) > 1:
        raise InputError("event: its lines have several weights, but a decision has only one")
    weight = np.float32(weights.pop())
    if weight == 1:
        return {}
    if not 1 < weight < np.inf:
        raise InputError(f"event: its weight is {weight}, but weights in a log are at least 1")
    near = np.float32(1 - 1 / np.float64(weight))
    drops = [near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1))]
    drop = min(drops, key=lambda drop: abs(np.float64(_ONE / (_ONE - drop)) - weight) if drop < 1 else np.inf)
    return {"pdrop": Raw(number_of(drop))}


def _allowed_actions(slot: NamedLine | Line) -> Iterator[str]:
    """Yield the member ``_inc``, the allowed actions of a slot, if the slot restricts them."""
    allowed = slot.outcomes()[1]
    if allowed:
        yield f'"_inc":[{",".join(map(str, allowed))}]'


def _outcomes(slots: list[NamedLine | Line]) -> Iterator[str]:
    """Yield the logged outcomes of slots, if any; VW reads them only after the context."""
    objects = []
    for slot in slots:
        members = []
        for action, cost, probability in slot.outcomes()[0]:
            if not probability:
                raise InputError("event: a slot's label has no probability, which a decision requires")
            members = [
                f'"_label_cost":{number_of(cost)}',
                f'"_a":[{action}]',
                f'"_p":[{number_of(probability)}]',
            ]
        objects.append(object_of(members))
    while objects and objects[-1] == "{}":
        objects.pop()
    if objects:
        yield f'"_outcomes":[{",".join(objects)}]'
