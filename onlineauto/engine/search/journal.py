"""Journal: one JSON line for each decision of the search, which explains each change of champion.

The first line has the options. Each later line has ``events``, the number of completed events; the decision;
and its evidence: bounds on the live configs concerned. Decisions on a new namespace have no bounds. The last
line has the total number of events; a journal without it was interrupted. A journal can be replayed over the
same stream.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal, NamedTuple, Protocol, TypeAlias

import msgspec

from onlineauto.automl.config import Config, ConfigKind, Interaction, Settings
from onlineauto.automl.decisions import (
    ENSEMBLE,
    Extend,
    PredictWith,
    Remove,
    Reopen,
    RestMembers,
    Rotate,
    Swap,
    Widen,
)
from onlineauto.engine.options.registry import RunOptions
from onlineauto.errors import InputError, OptionError
from onlineauto.options import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from onlineauto.automl.decisions import Decision, Statistics
    from onlineauto.options import Configuration

Count = Annotated[int, msgspec.Meta(ge=0)]
Names = Annotated[list[str], msgspec.Meta(min_length=1, max_length=3)]


class Sink(Protocol):
    """A target of bytes, such as a binary file, a pipe or a socket."""

    def write(self, data: bytes, /) -> object:
        """Write bytes, perhaps into a buffer."""

    def flush(self) -> object:
        """Pass on all bytes written so far."""


class Bounds(msgspec.Struct, frozen=True):
    """Bounds on a live config's reward, and on the champion's over the same `updates` events."""

    updates: Count
    lower: float
    upper: float
    champion_lower: float
    champion_upper: float


class Promotion(NamedTuple):
    """A change of champion."""

    events: int  # Number of completed events.
    before: tuple[Interaction, ...]  # Interactions of the old and of the new champion.
    after: tuple[Interaction, ...]
    bounds: Bounds  # Bounds on the rewards of both.
    level: float | None = None  # Error probability of the paired test, None if the bounds decided.
    by: str = "reward"  # The test that proved the new champion better.
    before_settings: Settings = ()  # Hyperparameters of both that differ from the command line.
    after_settings: Settings = ()


class JournalHead(msgspec.Struct, frozen=True, tag="search", tag_field="decision"):
    """The first line of a journal."""

    command: str  # Options that a model stores, in the form of a command line.


class _Widen(msgspec.Struct, frozen=True, tag="widen", tag_field="decision"):
    events: Count
    names: list[str]


class _Rotate(msgspec.Struct, frozen=True, tag="rotate", tag_field="decision"):
    events: Count
    slot: Count
    index: Count
    kind: ConfigKind
    elements: list[Names]
    bounds: Bounds | None  # of the config that is replaced
    settings: dict[str, float | str] = {}
    why: str = ""


class _Extend(msgspec.Struct, frozen=True, tag="extend", tag_field="decision"):
    events: Count
    slot: Count
    lease: Count
    place_of: int | None
    bounds: Bounds


class _Swap(msgspec.Struct, frozen=True, tag="swap", tag_field="decision"):
    events: Count
    slot: Count
    kind: ConfigKind
    elements: list[Names]
    bounds: Bounds
    by: str = "reward"
    keeps: bool = False
    settings: dict[str, float | str] = {}


class _Remove(msgspec.Struct, frozen=True, tag="remove", tag_field="decision"):
    events: Count
    slot: Count
    index: Count
    bounds: Bounds


class _Reopen(msgspec.Struct, frozen=True, tag="reopen", tag_field="decision"):
    events: Count
    what: str
    indices: list[Count]


class _PredictWith(msgspec.Struct, frozen=True, tag="predict_with", tag_field="decision"):
    events: Count
    who: Literal["ensemble", "champion"]
    by: str
    ensemble: Bounds  # of the ensemble, and of the champion over the same events


class _RestMembers(msgspec.Struct, frozen=True, tag="rest_members", tag_field="decision"):
    events: Count
    members: list[str]  # those that rest from now on
    prices: dict[str, float]  # of those that can work
    worths: dict[str, float]  # of those that work


class End(msgspec.Struct, frozen=True, tag="end", tag_field="decision"):
    """The last line: the total number of events of the run."""

    events: Count


Entry: TypeAlias = _Widen | _Rotate | _Extend | _Swap | _Remove | _Reopen | _PredictWith | _RestMembers
"""A line with a decision."""

_DECODER = msgspec.json.Decoder(JournalHead | End | Entry)


def _name_text(name: bytes) -> str:
    """Return the name of a namespace, which may have any bytes, as text for JSON."""
    with suppress(UnicodeDecodeError):
        if not (text := name.decode("utf-8")).startswith("hex:"):
            return text
    return "hex:" + name.hex()


def _name_bytes(name: str) -> bytes:
    """Return the bytes of a name from the text made by `_name_text`."""
    return bytes.fromhex(name.removeprefix("hex:")) if name.startswith("hex:") else name.encode()


def _elements(config: Config) -> list[list[str]]:
    return [[_name_text(name) for name in interaction] for interaction in config.elements]


def _config(entry: _Rotate | _Swap) -> Config:
    elements = (tuple(_name_bytes(name) for name in interaction) for interaction in entry.elements)
    config = Config.of(elements, entry.kind)
    for name, value in entry.settings.items():
        config = config.with_setting(name, value)
    return config


def bounds_of(live: int, statistics: Statistics) -> Bounds:
    """Return the bounds on live config `live`."""
    return Bounds(
        updates=statistics.updates(live),
        lower=statistics.lower(live),
        upper=statistics.upper(live),
        champion_lower=statistics.champion_lower(live),
        champion_upper=statistics.champion_upper(live),
    )


def entry_of(decision: Decision, *, events: int, statistics: Statistics) -> Entry:
    """Return the line for a decision that is about to be applied after `events` events."""
    if isinstance(decision, Widen):
        return _Widen(events, [_name_text(name) for name in decision.names])
    if isinstance(decision, Reopen):
        return _Reopen(events, decision.what, list(decision.indices))
    if isinstance(decision, PredictWith):
        return _PredictWith(events, decision.who, decision.by, bounds_of(ENSEMBLE, statistics))
    if isinstance(decision, RestMembers):
        prices = {name: terms.price for name, terms in statistics.members().items()}
        worths = dict(statistics.member_worths(decision.members))
        return _RestMembers(events, list(decision.members), prices, worths)
    if isinstance(decision, Rotate):
        config, live = decision.config, decision.live
        made_room = bounds_of(live, statistics) if statistics.updates(live) > 0 else None
        return _Rotate(
            events,
            live,
            decision.index,
            config.kind,
            _elements(config),
            made_room,
            dict(config.settings),
            decision.why,
        )
    bounds = bounds_of(decision.live, statistics)
    if isinstance(decision, Extend):
        return _Extend(events, decision.live, decision.lease, decision.place_of, bounds)
    if isinstance(decision, Swap):
        config = decision.config
        kind, elements, settings = config.kind, _elements(config), dict(config.settings)
        return _Swap(events, decision.live, kind, elements, bounds, decision.by, decision.keeps, settings)
    return _Remove(events, decision.live, decision.index, bounds)


def decision_of(entry: Entry) -> Decision:
    """Return the decision in a line."""
    if isinstance(entry, _Widen):
        return Widen(tuple(_name_bytes(name) for name in entry.names))
    if isinstance(entry, _Reopen):
        return Reopen(entry.what, tuple(entry.indices))
    if isinstance(entry, _Rotate):
        return Rotate(entry.slot, entry.index, _config(entry), entry.why)
    if isinstance(entry, _Extend):
        return Extend(entry.slot, entry.lease, entry.place_of)
    if isinstance(entry, _Swap):
        return Swap(entry.slot, _config(entry), entry.by, entry.keeps)
    if isinstance(entry, _PredictWith):
        return PredictWith(entry.who, entry.by)
    if isinstance(entry, _RestMembers):
        return RestMembers(tuple(entry.members))
    return Remove(entry.slot, entry.index)


class Journal:
    """Writes a journal, and flushes each line."""

    def __init__(self, sink: Sink, *, command: str, began: bool = False) -> None:
        self._sink = sink
        if not began:
            self._write(JournalHead(command))

    def append(self, entry: Entry) -> None:
        """Write a line."""
        self._write(entry)

    def end(self, *, events: int) -> None:
        """Write the last line, after a total of `events` events."""
        self._write(End(events))

    def _write(self, line: JournalHead | Entry | End) -> None:
        self._sink.write(msgspec.json.encode(line) + b"\n")
        self._sink.flush()


def read_journal(
    source: BinaryIO,
    *,
    name: str = "journal",
    same_options: Callable[[str], bool] | None = None,
    on_damage: Callable[[str], None] | None = None,
) -> Iterator[Entry | End]:
    """Yield the lines of a journal after the first one, in order, without an incomplete last line."""
    began, events = False, 0
    for number, line in enumerate(source, 1):
        if not line.endswith(b"\n"):
            if on_damage is not None:
                on_damage(f"{name}:{number}: the last line is incomplete")
            break
        try:
            entry = _DECODER.decode(line)
            if not isinstance(entry, JournalHead | End):
                decision_of(entry)
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            damage = f"{name}:{number}: not a line of a journal: {error}"
            if on_damage is None or not began:
                raise InputError(damage) from None
            on_damage(damage)
            continue
        if isinstance(entry, JournalHead) == began:
            what = "a second first line" if began else "the first line, which names the options, is missing"
            raise InputError(f"{name}:{number}: {what}")
        if isinstance(entry, JournalHead):
            began = True
            if same_options is not None and not same_options(entry.command):
                raise InputError(f"{name} is the journal of a run with other options: {entry.command}")
            continue
        if entry.events < events:
            raise InputError(f"{name}:{number}: its number of events is below that of the line above")
        events = entry.events
        yield entry
    if not began:
        raise InputError(f"{name}: the first line, which names the options, is missing")


def entries_to_replay(configuration: Configuration) -> list[Entry | End] | None:
    """Return the entries of the journal to replay, None if there is none."""
    path = configuration[RunOptions].replay
    if path is None:
        return None

    registry = Registry([type(group) for group in configuration.groups])

    def has_options(command: str) -> bool:
        try:
            other = registry.parse_kept(command)
        except OptionError as error:
            raise InputError(f"{path} is the journal of a run with other options: {error}") from None
        names = (option.name for option in registry.options if option.keep)
        return all(other.get(name) == configuration.get(name) for name in names)

    try:
        with Path(path).open("rb") as file:
            return list(read_journal(file, name=path, same_options=has_options))
    except OSError as error:
        raise InputError(f"cannot read the journal {path}: {error.strerror}") from None
