"""``event_text``, ``write_text``: events as VW text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onlineauto.errors import InputError
from onlineauto.features.event import Event
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import NamedEvent, NamedLine, named_event, vector_of
from onlineauto.formats.sources.replaced_file import replacing
from onlineauto.formats.text.writer import NO_WEIGHT, can_be_name, line_text, namespace_word, number_word

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeAlias

    from onlineauto.features.event import Line

    AnyEvent: TypeAlias = Mapping[str, Any] | NamedEvent | Event


def event_text(
    event: Mapping[str, Any] | NamedEvent | Event,
    *,
    multiline: bool | None = None,
    slots: bool | None = None,
    hash_seed: int = 0,
) -> str:
    r"""Return the VW text of one event, which is read as the same event.

    A name that a text cannot contain (with a blank, a colon, a bar or a control byte) is written as the
    number with the same hash. So is every name of an `Event`, which has only hashes. Such a number is valid
    for one ``--hash_seed``, and not with ``--hash all``.

    Parameters
    ----------
    event : mapping, NamedEvent or Event
        See `from_dicts` for mappings; `onlineauto.read(...).events()` yields Events.
    multiline : bool, optional
        True if an empty line ends the event, as for ``--cb_adf`` and ``--cb_explore_adf``. By default an
        Event is multiline if it has several lines or a shared one.
    slots : bool, optional
        True if lines are labelled as for ``--ccb_explore_adf``. By default an Event is if it has a slot.
    hash_seed : int
        ``--hash_seed`` of the reader.

    Examples
    --------
    >>> user = {"name": "tom", "age": 0.5}
    >>> event = {"context": {"user": user}, "actions": [{"topic": "sports"}, {"topic": "art"}]}
    >>> print(event_text(event | {"chosen": 1, "cost": -1, "probability": 0.25}).rstrip())
    shared |user name=tom age:0.5
    |topic topic=sports
    0:-1.0:0.25 |topic topic=art
    >>> slots = [{"chosen": 1, "cost": -1, "probability": 0.25}, {"context": {"at": "top"}, "only": [0]}]
    >>> print(event_text(event | {"slots": slots}).rstrip())
    ccb shared |user name=tom age:0.5
    ccb action |topic topic=sports
    ccb action |topic topic=art
    ccb slot 1:-1.0:0.25 |
    ccb slot 0 |at at=top
    """
    if not isinstance(event, NamedEvent | Event):
        event = named_event(event)
    if isinstance(event, NamedEvent):
        multiline, slots = event.multiline, event.slots
    if multiline is None:
        multiline = len(event.lines) > 1 or event.lines[0].shared
    if slots is None:
        slots = any(line.slot for line in event.lines)
    names = NameHashes(hash_seed=hash_seed)
    lines = []
    for line in event.lines:
        if line.label is None and line.weight != 1:
            raise InputError(f"event: its weight is {line.weight}, which {NO_WEIGHT}")
        lines.append(line_text(line, _spans(line, names), slots=slots) + "\n")
    return "".join(lines) + "\n" * multiline


def write_text(
    events: Iterable[Mapping[str, Any] | NamedEvent | Event],
    path: str | os.PathLike[str],
    *,
    multiline: bool | None = None,
    slots: bool | None = None,
    hash_seed: int = 0,
) -> int:
    """Write events to a file of VW text; return their number.

    The file appears once it is completely on disk. The other parameters are those of `event_text`.
    `multiline` is required for Events of one action each, and `slots` for Events without any slot.
    """
    return write_events(
        events,
        path,
        lambda event, _: event_text(event, multiline=multiline, slots=slots, hash_seed=hash_seed),
    )


def write_events(
    events: Iterable[AnyEvent], path: str | os.PathLike[str], text_of: Callable[[AnyEvent, int], str]
) -> int:
    """Write the text that `text_of` returns for each event and its index, from 0; return their number.

    The file appears once it is completely on disk.
    """
    n = 0
    with replacing(path) as file:
        for n, event in enumerate(events, 1):
            try:
                text = text_of(event, n - 1)
            except InputError as error:
                raise InputError(f"event {n - 1}: {str(error).removeprefix('event: ')}") from error
            file.write(text.encode("utf-8", "surrogateescape"))
    return n


def _spans(line: NamedLine | Line, names: NameHashes) -> list[str]:
    """Return the texts of the namespaces of a line."""
    named = isinstance(line, NamedLine)
    spans = line.spans if isinstance(line, NamedLine) else line.features.items()
    texts = []
    for namespace, features in spans:
        vector = vector_of(features, 0 if named else names.namespace_hash(namespace))
        if vector is not None:
            words = [f":{number_word(number)}" for number in vector]
        else:
            pairs = [(str(name) if named else name, value) for name, value in features if value]
            words = [_feature_word(name, value, namespace, names) for name, value in pairs]
        texts.append(" ".join([namespace_word(namespace), *words]))
    return texts


def _feature_word(name: str | int, value: float, namespace: str, names: NameHashes) -> str:
    if isinstance(name, int) or not name or not can_be_name(name):
        name = str((names.hash_in(name, namespace) - names.namespace_hash(namespace)) % 2**32)
    return name if value == 1 else f"{name}:{number_word(value)}"
