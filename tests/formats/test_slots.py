"""Problems of events with slots, and the order of their members."""

from __future__ import annotations

import json

import pytest

from onlineauto.errors import ParseError
from onlineauto.formats.lines.problem_code_kernels import ProblemCode
from tests.formats.reading import json_reader, text_reader
from tests.naive.lines import Line, unpack

pytestmark = pytest.mark.lane("sampled")

ACTIONS = "ccb action |A a\nccb action |A b\nccb action |A c\n"


def read(text: str, *, exact: bool = False) -> tuple[list[list[Line]], list[tuple[int, ProblemCode]]]:
    reader = text_reader(text.encode(), label="ccb", multiline=True, exact=exact)
    events = unpack(reader)
    return events, [(found.line, found.code) for found in reader.diagnostics.kept]


def event(*slots: str) -> str:
    return "ccb shared |U u\n" + ACTIONS + "".join(f"ccb slot {slot}\n" for slot in slots) + "\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (event("0:1:0.5 |", "0:1:0.5 |"), (6, ProblemCode.SLOT_ACTION)),
        (event("3:1:0.5 |"), (5, ProblemCode.SLOT_ACTION)),
        (event("0:1:0.5 1,2 |"), (5, ProblemCode.SLOT_ACTION)),
        (event("|", "|", "|", "|"), (5, ProblemCode.TOO_MANY_SLOTS)),
        (ACTIONS + "ccb slot |\n", (1, ProblemCode.SLOT_ORDER)),
        ("ccb shared |\nccb slot |\n" + ACTIONS, (3, ProblemCode.SLOT_ORDER)),
        ("ccb shared |\nccb shared |\n" + ACTIONS, (2, ProblemCode.SLOT_ORDER)),
        ("ccb shared |\n|A a\n", (2, ProblemCode.SLOT_LABEL)),
    ],
)
def test_an_invalid_event_is_skipped_and_located(text: str, problem: tuple[int, ProblemCode]) -> None:
    events, problems = read(text + "\n" + event("0:1:0.5 |"))
    assert (len(events), problems) == (1, [problem])


@pytest.mark.parametrize(
    "slots", [("0:1 |",), ("0:1:0.5,1:0.1 |",), ("|", "|", "|", "|"), ("0:1:1 1:1:1 |",)]
)
def test_exact_mode_stops_at_fatal_slots(slots: tuple[str, ...]) -> None:
    with pytest.raises(ParseError):
        read(event(*slots), exact=True)


def test_exact_mode_reads_lists_and_outcomes_in_any_order() -> None:
    events, _ = read(event("2,x 0:1:0.5 |"), exact=True)
    assert [cost[0] for cost in events[0][-1].costs] == [0, 2, 0]


def log(slots: list[object], outcomes: list[object]) -> bytes:
    context = {"_multi": [{"A": {"x": 1}}, {"A": {"x": 2}}], "_slots": slots}
    return json.dumps({"c": context, "_outcomes": outcomes}).encode() + b"\n"


GOOD = {"_label_cost": 1.0, "_a": [1, 0], "_p": [0.5, 0.5]}


@pytest.mark.parametrize(
    ("outcome", "code"),
    [
        (GOOD, None),
        ({}, None),
        ({**GOOD, "_p": [0.5]}, ProblemCode.SLOT_LISTS),
        ({**GOOD, "_p": [0, 1]}, ProblemCode.PROBABILITY_ZERO),
        ({"_a": [1], "_p": [1]}, ProblemCode.NO_COST),
        ({**GOOD, "_a": [7, 1]}, ProblemCode.SLOT_ACTION),
    ],
)
def test_outcomes_of_a_log(outcome: dict[str, object], code: ProblemCode | None) -> None:
    reader = json_reader(log([{"S": {"s": 1}}], [outcome]), log=True, label="ccb", multiline=True)
    events = unpack(reader)
    assert [found.code for found in reader.diagnostics.kept] == ([code] if code else [])
    assert [[line.slot for line in lines] for lines in events] == (
        [] if code else [[False, False, False, True]]
    )


def read_log(text: bytes) -> tuple[list[list[Line]], list[ProblemCode]]:
    reader = json_reader(text, log=True, label="ccb", multiline=True)
    return unpack(reader), [found.code for found in reader.diagnostics.kept]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (log([{}], [GOOD, GOOD]), ProblemCode.JSON_OUTCOMES),
        (log([{}], [GOOD]).replace(b"{", b'{"_outcomes": [], ', 1), ProblemCode.JSON_OUTCOMES),
        (log([GOOD], [GOOD]), ProblemCode.SLOT_LABELLED),
        (log([{"__aid": 3}], [GOOD]), ProblemCode.JSON_KEY),
        (log([{"S": {"_inc": [1]}}], [GOOD]), ProblemCode.JSON_KEY),
        (log([{"_inc": [0.5]}], []), ProblemCode.JSON_UNEXPECTED),
    ],
)
def test_problems_of_slots_are_located_and_the_next_line_is_read(text: bytes, code: ProblemCode) -> None:
    events, codes = read_log(text + log([{}], [GOOD]))
    assert (len(events), codes) == (1, [code])


def test_outcomes_may_come_before_the_context() -> None:
    slots: list[object] = [{"S": {"s": 1}}, {"_inc": [0]}]
    outcomes: list[object] = [GOOD, {"_label_cost": 2, "_a": [0], "_p": [1]}]
    members = json.loads(log(slots, outcomes))
    early = json.dumps({name: members[name] for name in ("_outcomes", "c")}).encode() + b"\n"
    assert early != log(slots, outcomes)
    assert read_log(early) == read_log(log(slots, outcomes))
    assert read_log(early)[1] == []


def test_slots_are_stored_after_the_actions() -> None:
    text = b'{"_slots": [{"_inc": [1], "S": {"s": 1}}], "_multi": [{"A": {"x": 1}}, {"A": {"x": 2}}]}\n'
    ((*actions, slot),) = unpack(json_reader(text, log=False, label="ccb", multiline=True))
    assert [line.shared for line in actions] == [True, False, False]
    assert (slot.slot, [cost[0] for cost in slot.costs]) == (True, [1])
