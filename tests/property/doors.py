"""Doors: the source types of an event (text, dicts, JSON, …), each a function from an event to a block."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec
import pandas
import polars
import pyarrow

from onlineauto import InputError
from onlineauto.engine.stream.event_readers import event_readers
from onlineauto.features.block import Block
from onlineauto.formats.mappings.encoded_event import EncodedEvent
from onlineauto.interop import event_dsjson, from_dicts, from_frame
from onlineauto.service.http.wire import PersonalizerRank, Rank
from onlineauto.service.options import Limits
from onlineauto.service.ranking import context_of
from onlineauto.service.refused import RefusedError
from onlineauto.workspace.options import REGISTRY
from tests.property.door_events import DoorEvent, Leaf, canonical, dressed, plain

_IN_TEXT = re.compile(r"[^\s|:\x00-\x20\x7f]+")


class Doors:
    """All doors for events of a kind; readers are made once, as in a process that reads many events.

    A door returns a block, None if it refuses the event, or Ellipsis if it cannot express it.
    """

    def __init__(self, *, actions: bool) -> None:
        self.actions = actions
        kind: dict[str, Any] = {"cb_explore_adf": True} if actions else {}
        text, lines, log = (
            event_readers(REGISTRY.from_keywords(**kind, **form))
            for form in ({}, {"json": True}, {"dsjson": True})
        )
        self._mapping, self._text, self._json, self._log = text.mapping, text.text, lines.text, log.text
        self.all: Mapping[str, Callable[[DoorEvent], Any]] = {
            "dict": self.dict_at_once,
            "dicts": self.dicts,
            "frame": self.frame,
            "text": self.text,
            "json": self.json,
            "dsjson": self.dsjson,
        }
        if actions:
            self.all |= {
                "asked": self.asked,
                "http": self.http,
                "personalizer": self.personalizer,
                "decision log": self.decision_log,
            }

    # -- mappings --------------------------------------------------------------------------------------

    def dict_at_once(self, event: DoorEvent) -> Any:
        """One mapping, read by a kernel if its values are Python's own."""
        return _or_none(lambda: self._mapping.parse_one(mapping_of(event)))

    def dicts(self, event: DoorEvent) -> Any:
        """Return an iterable of mappings."""
        return _or_none(lambda: next(from_dicts([mapping_of(event)])))

    def asked(self, event: DoorEvent) -> Any:
        """Return a decision that was ranked, and learns its reward."""
        mapping = mapping_of(event)
        encoded = EncodedEvent(mapping["context"], mapping["actions"])
        if event.cost is not None and event.cost.plain is not None and event.probability is not None:
            assert event.chosen is not None
            encoded = encoded.with_outcome(
                event.chosen, cost=event.cost.plain, probability=event.probability.plain
            )
        return _or_none(lambda: self._mapping.parse_one(encoded))

    def decision_log(self, event: DoorEvent) -> Any:
        """The decision that a bandit logs."""
        try:
            line = event_dsjson(mapping_of(event))
        except InputError:
            return None
        return self._parsed(self._log, line.encode())

    # -- frames ----------------------------------------------------------------------------------------

    def frame(self, event: DoorEvent) -> Any:
        """Return a frame of some library, with a row for each action."""
        lines = [event.context, *(event.actions or [])]
        groups: list[dict[str, list[str]]] = [{}, {}]
        cells: list[dict[str, Leaf | Any]] = []
        taken: dict[str, tuple[bool, str]] = {}
        for number, line in enumerate(lines):
            row: dict[str, Any] = {}
            for namespace, value in line.items():
                columns = value if isinstance(value, dict) else {namespace: value}
                for name, each in columns.items():
                    owner = number > 0, namespace
                    if taken.setdefault(name, owner) != owner or name in ("id", "cost", "p", "y"):
                        return ...
                    row[name] = each
                    of = groups[number > 0].setdefault(namespace, [])
                    if name not in of:
                        of.append(name)
                places = [groups[number > 0].get(namespace, []).index(name) for name in columns]
                if places != sorted(
                    places
                ):  # a frame has one order of columns, by which sums and products go
                    return ...
            order = [list(groups[number > 0]).index(namespace) for namespace in line if line[namespace] != {}]
            if order != sorted(order):
                return ...
            cells.append(row)
        rows = [cells[0] | action for action in cells[1:2]] + cells[2:] if self.actions else cells[:1]
        columns = {name: [dressed(row[name]) if name in row else None for row in rows] for name in taken}
        options: dict[str, Any] = {"context": groups[0]}
        if self.actions:
            logged = event.chosen if event.cost is not None else None
            columns["id"] = [1] * len(rows)
            columns["cost"] = [
                event.cost.dressed if i == logged and event.cost else None for i in range(len(rows))
            ]
            columns["p"] = [
                event.probability.plain if i == logged and event.probability else None
                for i in range(len(rows))
            ]
            options |= {"actions": groups[1], "event": "id", "cost": "cost", "probability": "p"}
        elif event.label is not None:
            columns["y"] = [event.label.dressed]
            options["label"] = "y"
        if not columns:  # a frame without columns has no rows
            return ...
        return _or_none(lambda: next(from_frame(_frame_of(columns), **options)))

    # -- lines -----------------------------------------------------------------------------------------

    def text(self, event: DoorEvent) -> Any:
        """VW text, in which lists and mappings within are namespaces that are written out."""
        lines = []
        for number, features in enumerate([event.context, *(event.actions or [])]):
            found = _bad_too(features)
            if not all(
                _IN_TEXT.fullmatch(name) and (space == " " or _IN_TEXT.fullmatch(space))
                for space, name, _ in found
            ):
                return ...
            spans = " ".join(
                f"|{'' if space == ' ' else space} {name}:{value!r}" for space, name, value in found
            )
            label = "shared" if self.actions and number == 0 else ""
            if self.actions and event.cost is not None and event.chosen == number - 1:
                assert event.probability is not None
                label = f"0:{_number_text(event.cost)}:{event.probability.plain!r}"
            if not self.actions and event.label is not None:
                label = _number_text(event.label)
            lines.append(f"{label} {spans or '|'}")
        return self._parsed(self._text, "\n".join([*lines, ""]).encode())

    def json(self, event: DoorEvent) -> Any:
        """Return a line of ``--json``."""
        label = self._label(event)
        members = [*label, *_members(event.context)]
        if event.actions is not None:
            members.append(f'"_multi":[{",".join(_object(each) for each in event.actions)}]')
        return self._parsed(self._json, f"{{{','.join(members)}}}".encode())

    def dsjson(self, event: DoorEvent) -> Any:
        """Return a line of the log of a decision service."""
        members = _members(event.context)
        if event.actions is not None:
            members.append(f'"_multi":[{",".join(_object(each) for each in event.actions)}]')
        return self._parsed(self._log, self._line(event, f"{{{','.join(members)}}}".encode()))

    def http(self, event: DoorEvent) -> Any:
        """Return the body of a rank, and the reward that comes later."""
        assert event.actions is not None
        actions = ",".join(map(_object, event.actions))
        body = f'{{"context":{_object(event.context)},"actions":[{actions}]}}'
        return self._asked_over_http(event, body, Rank)

    def personalizer(self, event: DoorEvent) -> Any:
        """Return the request and the reward in the format of Azure Personalizer."""
        assert event.actions is not None
        actions = ",".join(f'{{"id":"{i}","features":[{_object(a)}]}}' for i, a in enumerate(event.actions))
        return self._asked_over_http(
            event, f'{{"contextFeatures":[{_object(event.context)}],"actions":[{actions}]}}', PersonalizerRank
        )

    def _asked_over_http(self, event: DoorEvent, body: str, kind: Any) -> Any:
        try:
            request = msgspec.json.decode(body.encode(), type=kind).rank_request(lambda: "e")
            context = context_of(request, Limits(), set())
        except (msgspec.DecodeError, RefusedError):
            return None
        return self._parsed(self._log, self._line(event, context))

    def _line(self, event: DoorEvent, context: bytes) -> bytes:
        return b"{%b}" % b",".join([*(each.encode() for each in self._label(event)), b'"c":' + context])

    def _label(self, event: DoorEvent) -> list[str]:
        """Return the members of the label of a line of JSON."""
        if not self.actions:
            return [] if event.label is None else [f'"_label_label":{_json_number(event.label)}']
        if event.cost is None or event.probability is None:
            return []
        cost, probability = _json_number(event.cost), _json_number(event.probability)
        return [
            f'"_label_cost":{cost}',
            f'"_label_probability":{probability}',
            f'"_labelIndex":{event.chosen}',
        ]

    def _parsed(self, reader: Any, data: bytes) -> Block | None:
        blocks = reader.parse(data)
        assert sum(map(len, blocks)) <= 1
        if not blocks:
            assert reader.diagnostics.total, data
            return None
        found: Block = blocks[0]
        return found


def mapping_of(event: DoorEvent) -> dict[str, Any]:
    """Return the event as `from_dicts` takes it."""
    mapping: dict[str, Any] = {"context": dressed(event.context)}
    if event.label is not None:
        mapping["label"] = event.label.dressed
    if event.actions is not None:
        mapping["actions"] = dressed(event.actions)
        if event.cost is not None and event.probability is not None:
            mapping |= {"chosen": event.chosen, "cost": event.cost.dressed}
            mapping["probability"] = event.probability.dressed
    return mapping


def _or_none(door: Callable[[], Block]) -> Block | None:
    try:
        return door()
    except InputError:
        return None


_FRAMES: list[Any] = [
    pandas.DataFrame,
    lambda columns: pandas.DataFrame(columns).convert_dtypes(),
    lambda columns: pandas.DataFrame(columns).convert_dtypes(dtype_backend="pyarrow"),
    pyarrow.table,
    lambda columns: polars.DataFrame(columns, strict=False),
]


def _frame_of(columns: dict[str, list[Any]]) -> Any:
    """Return the columns as a frame of a library that can have them."""
    of_python = all(
        type(value) in (str, float, bool, int, type(None)) for each in columns.values() for value in each
    )
    alike = all(len({type(value) for value in each if value is not None}) <= 1 for each in columns.values())
    small = all(
        not isinstance(value, int) or abs(value) < 2**53 for each in columns.values() for value in each
    )
    kind = Random(repr(columns)).randrange(len(_FRAMES) + 1)
    if of_python and alike and small and kind < len(_FRAMES):
        return _FRAMES[kind](columns)
    return pandas.DataFrame({name: pandas.Series(each, dtype=object) for name, each in columns.items()})


def _bad_too(features: dict[str, Any]) -> list[tuple[str, str, float]]:
    """Return the canonical features, with the numbers that are too large as they are."""
    if "spoilt" in features:
        rest = {name: value for name, value in features.items() if name != "spoilt"}
        return [*canonical(rest), ("spoilt", "f", features["spoilt"]["f"].plain)]
    return canonical(features)


def _number_text(leaf: Leaf) -> str:
    return "nan" if leaf.plain is None else repr(leaf.plain)


def _json_number(leaf: Leaf) -> str:
    return '"NaN"' if leaf.plain is None else json.dumps(leaf.plain)


def _value(value: Any) -> str:
    if isinstance(value, float) and math.isinf(value):
        return "1e999"
    return json.dumps(value, ensure_ascii=False)


def _object(features: dict[str, Any]) -> str:
    return f"{{{','.join(_members(features))}}}"


def _members(features: dict[str, Any]) -> list[str]:
    """Return the members of a JSON object; a value with the name of its namespace is in a separate object."""
    members = []
    for name, value in features.items():
        tree = value if isinstance(value, dict | list) else {name: value}
        members.append(f"{json.dumps(name, ensure_ascii=False)}:{_json_tree(tree)}")
    return members


def _json_tree(tree: Any) -> str:
    if isinstance(tree, dict):
        return (
            f"{{{','.join(f'{json.dumps(n, ensure_ascii=False)}:{_json_tree(v)}' for n, v in tree.items())}}}"
        )
    if isinstance(tree, list):
        return f"[{','.join(map(_json_tree, tree))}]"
    return _value(plain(tree))
