"""Events that have slots: mappings, names, text, logs and blocks, all the same events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlineauto import InputError, Workspace, convert, read
from onlineauto.interop import event_dsjson, event_text, from_dicts, read_named, write_dsjson, write_text
from tests.interop.learnt import lines_of, lines_of_text
from tests.parity.slot_streams import SLOT_STREAMS

CCB: dict[str, Any] = {"ccb_explore_adf": True}
NAME = st.text(st.sampled_from([*"ab01", "é", "=", "'"]), min_size=1, max_size=5)
ODD_NAME = st.text(st.sampled_from([*"ab01_:|", " ", "\t", '"', "\\"]), max_size=4)
FEATURES = st.dictionaries(NAME | ODD_NAME, st.floats(-100, 100, width=32), max_size=3)
SPANS = st.dictionaries(NAME, FEATURES, max_size=3)
TAG = st.text(st.sampled_from("ab'1"), max_size=3)


@st.composite
def slot_events(draw: st.DrawFn) -> dict[str, Any]:
    actions = draw(st.lists(SPANS, min_size=1, max_size=4))
    left = draw(st.permutations(range(len(actions))))
    slots = []
    for chosen in left[: draw(st.integers(0, len(left)))]:
        slot: dict[str, Any] = {"context": draw(SPANS), "tag": draw(TAG)}
        if draw(st.booleans()):
            others = st.lists(st.integers(0, len(actions) - 1), max_size=3)
            slot["only"] = [*draw(others), chosen, *draw(others)]
        if draw(st.booleans()):
            cost, probability = draw(st.floats(-5, 5, width=32)), draw(st.floats(0.015625, 1, width=32))
            slot |= {"chosen": chosen, "cost": cost, "probability": probability}
        slots.append(slot)
    return {"context": draw(SPANS), "actions": actions, "slots": slots, "tag": draw(TAG)}


EVENTS = st.lists(slot_events(), min_size=1, max_size=3)


def unordered(events: list[list[Any]]) -> list[list[str]]:
    """Lines without their numbers, the features of each in any order: a log puts those of a name together."""
    return [[_unordered(line) for line in event] for event in events]


def _unordered(line: Any) -> str:
    features = sorted((name, feature) for name, found in line.spans for feature in found)
    return repr((line.shared, line.slot, line.costs, line.tag, features))


@pytest.mark.ci
@settings(max_examples=100)
@given(events=EVENTS, seed=st.sampled_from([0, 7]))
def test_mappings_names_text_and_blocks_are_the_same_events(
    tmp_path_factory: pytest.TempPathFactory, events: list[dict[str, Any]], seed: int
) -> None:
    directory = tmp_path_factory.mktemp("round")
    options = {**CCB, "hash_seed": seed}
    expected = lines_of(from_dicts(events, hash_seed=seed))
    text = "".join(event_text(event, hash_seed=seed) for event in events)
    assert lines_of_text(text, "ccb", hash_seed=seed) == expected
    named = list(read_named(text.encode(), **options))
    again = "".join(event_text(event, hash_seed=seed) for event in named)
    assert (
        lines_of_text(again, "ccb", hash_seed=seed) == expected
    )  # of names with one hash, one stands for all
    assert lines_of(from_dicts(named, hash_seed=seed)) == expected
    hashed = read(text.encode(), **options).events()
    written = "".join(event_text(event, slots=True, hash_seed=seed) for event in hashed)
    assert unordered(lines_of_text(written, "ccb", hash_seed=seed)) == unordered(expected)
    assert convert(text.encode(), directory / "1.blocks", **options) == len(events)
    assert lines_of(read(directory / "1.blocks", **options)) == expected
    assert convert(directory / "1.blocks", directory / "2.txt", **options) == len(events)
    assert lines_of(read(directory / "2.txt", **options)) == expected


@pytest.mark.ci
@settings(max_examples=100)
@given(events=EVENTS, seed=st.sampled_from([0, 7]))
def test_logs_are_the_same_events(events: list[dict[str, Any]], seed: int) -> None:
    options = {**CCB, "hash_seed": seed}
    text = "".join(event_text(event, hash_seed=seed) for event in events)
    log = "".join(event_dsjson(event, hash_seed=seed) for event in events)
    for line in log.splitlines():
        msgspec.json.decode(line)
    expected = unordered(lines_of(read(text.encode(), **options)))
    reading = read(log.encode(), dsjson=True, **options)
    assert unordered(lines_of(reading)) == expected
    again = list(read(log.encode(), dsjson=True, **options).events())
    log = "".join(event_dsjson(event, hash_seed=seed) for event in again)
    assert unordered(lines_of(read(log.encode(), dsjson=True, **options))) == expected
    text = "".join(event_text(event, slots=True, hash_seed=seed) for event in again)
    assert unordered(lines_of(read(text.encode(), **options))) == expected


def test_all_forms_are_learnt_alike(tmp_path: Path) -> None:
    text = SLOT_STREAMS["slots"](60, 3)
    named = list(read_named(text, **CCB))  # without those that native mode has no use for
    n = len(named)
    assert 40 < n < 60
    assert write_text(named, tmp_path / "1.txt") == n
    assert write_text(read(text, **CCB).events(), tmp_path / "2.txt") == n
    assert convert(text, tmp_path / "3.blocks", **CCB) == n
    assert convert(tmp_path / "3.blocks", tmp_path / "4.txt", **CCB) == n
    expected = learnt(text)
    assert [learnt(path) for path in sorted(tmp_path.iterdir())] == 4 * [expected]
    assert learnt(from_dicts(named)) == expected
    assert write_dsjson(named, tmp_path / "log.json") == n
    assert learnt(tmp_path / "log.json", dsjson=True) == expected


def learnt(source: Any, **options: Any) -> tuple[list[int], bytes, bytes]:
    """Choices and probabilities of a run, and the weights it ends with."""
    workspace = Workspace(**CCB, quadratic=["::"], bit_precision=12, **options)
    outcomes = [found for _, found in workspace.stream(source)]
    choices = np.concatenate([outcome.action for outcome in outcomes]).tolist()
    return choices, b"".join(outcome.score.tobytes() for outcome in outcomes), workspace.weights.tobytes()


A, B = {"a": {"x": 1}}, {"a": {"y": 1}}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"context": A, "slots": []}, "slots without actions"),
        ({"actions": [A], "slots": [{}, {}]}, "2 slots, and 1 actions"),
        (
            {"actions": [A, B], "slots": [{}], "chosen": 0, "cost": 1, "probability": 1},
            "chosen is for events without slots",
        ),
        ({"actions": [A, B], "slots": [{"chose": 1}]}, "slot 0: unknown key 'chose'; did you mean chosen"),
        ({"actions": [A, B], "slots": [{"only": [2]}]}, "slot 0: only must list some of the 2 actions"),
        ({"actions": [A, B], "slots": [{"chosen": 2}]}, "slot 0: chosen is 2, and there are 2 actions"),
        ({"actions": [A, B], "slots": [{"cost": 2}]}, "slot 0: a cost without chosen"),
        (
            {"actions": [A, B], "slots": 2 * [{"chosen": 0, "cost": 1, "probability": 1}]},
            "slot 1: chosen is 0, an action that this slot cannot have",
        ),
        (
            {"actions": [A, B], "slots": [{"chosen": 0, "cost": 1, "probability": 1, "only": [1]}]},
            "slot 0: chosen is 0, an action that this slot cannot have",
        ),
    ],
)
def test_invalid_mappings_are_refused(event: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"event 0: {message}"):
        next(from_dicts([event]))


def test_events_with_and_without_slots_do_not_mix() -> None:
    with pytest.raises(InputError, match="event 1: some events have slots and some do not"):
        list(from_dicts([{"actions": [A], "slots": []}, {"actions": [A]}]))


def test_a_slot_without_a_probability_is_no_decision() -> None:
    text = b"ccb shared |u x\nccb action |a x\nccb slot 0:1 |\n\n"
    [event] = read(text, **CCB, missing_probability="uniform").events()
    assert event_text(event).endswith("ccb slot 0:1.0 |\n\n")
    with pytest.raises(InputError, match="no probability"):
        event_dsjson(event)


def test_a_slot_without_a_cost_is_not_written(tmp_path: Path) -> None:
    log = b'{"_multi":[{"a":{"x":1}}],"_slots":[{"_a":[0],"_p":[1]}]}\n'
    options = {**CCB, "json": True, "vw_exact": True}
    [event] = read(log, **options).events()
    for written in (event_text, event_dsjson):
        with pytest.raises(InputError, match=r"without a cost|has no cost"):
            written(event)
    convert(log, tmp_path / "blocks", **options)
    with pytest.raises(InputError, match=r"without a cost|has no cost"):
        convert(tmp_path / "blocks", tmp_path / "text", **options)
