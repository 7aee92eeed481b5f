"""Events given as mappings: the kernel for ordinary values compared with `named_event`, which reads all."""

from __future__ import annotations

import copy
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlineauto.errors import InputError
from onlineauto.features.event import events
from onlineauto.formats.lines.reader_state_kernels import FEATURES, LINES, WIDEST
from onlineauto.formats.mappings.encoded_event import EncodedEvent, marshal_values
from onlineauto.formats.mappings.mapping_reader import MappingReader
from onlineauto.formats.mappings.name_hashes import NameHashes
from onlineauto.formats.mappings.named_event import named_block, named_event

pytestmark = pytest.mark.lane("sampled")

_NAMES = st.text(max_size=12) | st.sampled_from(["user", " ", "7", " 12 ", "a=b", "\udc80", "été"])
_NUMBERS = (
    st.floats()
    | st.integers(-(2**80), 2**80)
    | st.sampled_from([0, -0.0, 1e-46, 1e-40, 3.4028235e38, 3.4028236e38, 2**24 + 1, 2**31, -(2**31), 2**63])
)
_VALUES = _NUMBERS | _NAMES | st.booleans() | st.none()
_VECTORS = st.lists(st.floats(width=32, allow_infinity=False) | st.integers(0, 3) | st.none(), max_size=20)
_LISTS = st.lists(_NAMES) | st.lists(_VALUES) | _VECTORS | _VECTORS.map(tuple)
_NAMESPACES = st.dictionaries(_NAMES, _VALUES | st.dictionaries(_NAMES, _VALUES) | _LISTS)
_OUTCOMES = st.fixed_dictionaries(
    {},
    optional={
        "chosen": st.integers(-1, 3) | st.none(),
        "action": st.integers(-1, 2**33),
        "cost": _NUMBERS | st.none(),
        "probability": st.floats(0, 1) | st.sampled_from([1, 2, None]),
        "label": _NUMBERS,
        "weight": _NUMBERS,
        "initial": _NUMBERS,
        "tag": st.just("a"),
    },
)
_PLAIN = {"context": {"user": {"name": "tom", "age": 30}}}
_EVENT = _PLAIN | {"actions": [{"a": "x"}, {"b": 2.5, "tags": ["new", "hot"]}]}


def _twin(event: dict[str, Any]) -> Any:
    """Return the event that `named_event` reads, or the error."""
    try:
        return list(events(named_block([named_event(event)], NameHashes())))
    except (InputError, UnicodeEncodeError, TypeError) as error:
        return type(error)


def _read(readers: tuple[MappingReader, MappingReader], event: Any) -> Any:
    """Return the event that the reader of its kind reads, or the error."""
    multiline = isinstance(event, EncodedEvent) or "actions" in event
    try:
        return list(events(readers[multiline].parse_one(event)))
    except (InputError, UnicodeEncodeError, TypeError) as error:
        return type(error)


@given(st.lists(st.tuples(st.none() | _NAMESPACES, st.none() | st.lists(_NAMESPACES), _OUTCOMES), max_size=4))
def test_the_kernel_equals_named_event(drawn: list[tuple[Any, Any, dict[str, Any]]]) -> None:
    readers = MappingReader(actions=False), MappingReader(actions=True)
    for context, actions, outcome in drawn:
        event = dict(outcome)
        if context is not None:
            event["context"] = context
        if actions is not None:
            event["actions"] = actions
        assert _read(readers, event) == _twin(event)


def test_actions_have_32_bits() -> None:
    event = _PLAIN | {"cost": 1, "probability": 0.5}
    for action in (1 << 32, 10**40):
        with pytest.raises(InputError, match="the largest is"):
            MappingReader(actions=False).parse_one(event | {"action": action})


@pytest.mark.parametrize(
    "event",
    [
        _PLAIN,
        _EVENT,
        _PLAIN | {"label": 1.5, "weight": 2, "initial": -1},
        _PLAIN | {"action": 3, "cost": -1, "probability": 0.25},
        _EVENT | {"chosen": 1, "cost": 0, "probability": 1, "weight": 0},
        {"actions": [{}, {"x": None, "y": 0, "z": False}]},
        {"actions": [{"a": [1]}, {"a": [0.5, None, "new", True]}]},
        {"context": {"a": [0.0] * 20, "b": (1, 0)}},
        {"context": {"n": 2**40, "m": -(2**59), "f": math.nan, "t": ("a", "b")}},
        {"context": {}},
    ],
)
def test_usual_events_are_read_by_the_kernel(event: dict[str, Any]) -> None:
    reader = MappingReader(actions="actions" in event)
    assert reader.read(event)
    [read] = events(reader.make_block())
    assert [read] == _twin(event)
    sizes = [sum(map(len, line.features.values())) for line in read.lines]
    found = reader.sizes[[LINES, FEATURES, WIDEST]].tolist()
    shared = sizes[0] if read.lines[0].shared else 0
    widest = shared + max(sizes[1:] if read.lines[0].shared else sizes)
    assert found == [len(read.lines), sum(sizes), widest]


@pytest.mark.parametrize(
    "event",
    [
        {"context": {"a": np.float32(1)}},
        {"context": {1: 2}},
        {"context": {"a": {1: 2}}},
        {"context": {"a": 2**70}},
        {"context": {" ": 1}},
        {"context": {"": 1}},
        _EVENT | {"tag": "here"},
        {"actions": ()},
        {"actions": [{"a": [[1]]}]},
        {"actions": [{"a": [{"b": 1}]}]},
    ],
)
def test_unusual_events_are_read_by_named_event(event: dict[str, Any]) -> None:
    readers = MappingReader(actions=False), MappingReader(actions=True)
    assert not readers["actions" in event].read(event)
    assert _read(readers, event) == _twin(event)


def test_actions_beyond_32_bits_are_rejected() -> None:
    reader = MappingReader(actions=False)
    event = _PLAIN | {"cost": 1, "probability": 1}
    assert reader.parse_one(event | {"action": 2**32 - 1}).cost_action[0] == 2**32 - 1
    with pytest.raises(InputError, match=r"the largest is 2\^32 - 1"):
        reader.parse_one(event | {"action": 2**32})


def test_many_namespaces_and_long_names() -> None:
    reader = MappingReader(actions=False, hash="all", hash_seed=7)
    for n in (1, 300, 700, 5000):
        event = {"context": {f"{n} {i} {'x' * (i % 90)}": {"y" * i: "z" * i, "n": i} for i in range(n)}}
        twin = named_block([named_event(event)], NameHashes(hash="all", hash_seed=7))
        assert list(events(reader.parse_one(event))) == list(events(twin))


def test_copies_have_separate_records() -> None:
    reader = MappingReader(actions=False)
    assert reader.read(_PLAIN)
    other = _PLAIN | {"label": 1}
    for copied in (copy.deepcopy(reader), pickle.loads(pickle.dumps(reader))):  # noqa: S301 - its own bytes
        assert copied.read(other)
        assert list(events(copied.make_block())) == _twin(other)
    assert reader.read({"context": {"other": 1}})
    assert reader.make_block().namespaces.names == [b"user", b"other"]


@given(
    _NAMESPACES,
    st.lists(_NAMESPACES | st.just({"a": np.float32(1)}), min_size=1, max_size=3),
    st.sampled_from([0, 2]),
    _NUMBERS,
    st.floats(0, 1) | st.just(np.float64(0.5)),
)
def test_an_encoded_event_is_read_as_its_mapping(
    context: dict[str, Any], actions: list[Any], chosen: int, cost: float, probability: float
) -> None:
    readers = MappingReader(actions=True), MappingReader(actions=True)
    asked: dict[str, Any] = {"context": context, "actions": actions}
    known = asked | {"chosen": chosen, "cost": cost, "probability": probability}
    encoded = EncodedEvent(context, actions)
    with_outcome = encoded.with_outcome(chosen, cost=cost, probability=probability)
    for given_as, event in ((asked, encoded), (known, with_outcome)):
        assert event.mapping() == given_as
        if readers[0].read(event):
            assert readers[1].read(given_as)
        assert _read((readers[0],) * 2, event) == _twin(given_as)


def test_an_encoded_event_has_actions() -> None:
    with pytest.raises(InputError, match="events of this workspace have none"):
        MappingReader(actions=False).parse_one(EncodedEvent({"a": 1}, [{"b": 1}]))


@pytest.mark.parametrize(("chosen", "cost"), [(0, -1.0), (2**31 - 1, 1e30), (2**31, 0.5), (1, 3)])
def test_an_outcome_is_encoded_as_marshal_encodes_it(chosen: int, cost: float) -> None:
    context, actions = {"user": "tom"}, [{"x": 1}, {"y": 1}]
    event = EncodedEvent(context, actions).with_outcome(chosen, cost=cost, probability=0.25)
    assert event.data == marshal_values((context, actions, chosen, ..., cost, 0.25, ..., ..., ...))


def test_an_outcome_of_another_type_stays_unencoded_after_arrays_are_lists() -> None:
    cost: Any = Decimal(1)
    event = EncodedEvent({"user": "tom"}, [{"x": np.ones(2)}]).with_outcome(0, cost=cost, probability=0.5)
    assert event.data is None
    assert event.list_arrays()
    assert event.data is None
    assert event.mapping()["cost"] == 1
