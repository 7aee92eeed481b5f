"""``--ccb_explore_adf`` learns slots like separate events, and never offers an action twice."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onlineauto import Workspace, convert, read
from onlineauto.errors import InputError, OptionError
from tests.naive.slots import Slot, SlotEvent, written_out
from tests.parity.slot_streams import SLOT_STREAMS

CROSSED = ("U|_id", "A|_id", "S|_id", "U|A|_id")
EVENT = "ccb shared |U u\nccb action |A a\nccb action |A b\nccb action |A c\nccb slot |\nccb slot |S s\n"


def draw_events(n: int, seed: int) -> list[SlotEvent]:
    draw = random.Random(seed)
    events = []
    for _ in range(n):
        n_actions = draw.randrange(2, 6)
        left, slots = list(range(n_actions)), []
        for number in range(draw.randrange(1, n_actions + 1)):
            chosen = left.pop(draw.randrange(len(left)))
            confined = tuple({chosen, draw.randrange(n_actions)}) if draw.random() < 0.3 else ()
            outcome = (chosen, draw.choice((-1.0, 0.0, 0.5)), 0.5)
            slots.append(Slot(f"|S s{number} w:{draw.random():.3f}", outcome, confined))
        actions = tuple(f"|A a{draw.randrange(5)} x:{draw.random():.3f}" for _ in range(n_actions))
        events.append(SlotEvent(f"|U u{draw.randrange(4)} y:{draw.random():.3f}", actions, tuple(slots)))
    return events


@pytest.mark.parametrize(
    "options",
    [{}, {"cb_type": "ips"}, {"cb_type": "dr"}, {"softmax": True}, {"squarecb": True}, {"noconstant": True}],
)
def test_slots_are_learnt_as_events_of_their_own(options: dict[str, Any]) -> None:
    events = draw_events(40, 7)
    workspace = Workspace(ccb_explore_adf=True, quadratic="UA", **options)
    full_names = ["U|A", *CROSSED]
    twin = Workspace(cb_explore_adf=True, experimental_full_name_interactions=full_names, **options)
    for event in events:
        found = workspace.learn(event.text())
        for slot, (text, actions) in enumerate(written_out(event)):
            expected = np.zeros(len(event.actions), np.float32)
            expected[actions] = twin.learn(text)
            np.testing.assert_allclose(found[slot], expected, atol=2e-5)
    assert workspace.label_range == pytest.approx(twin.label_range)


def test_chosen_action_is_not_offered_to_later_slots() -> None:
    workspace = Workspace(ccb_explore_adf=True).fit(SLOT_STREAMS["slots_rewards"](50, 1))
    for block, outcomes in workspace.stream(SLOT_STREAMS["slots_seeded"](50, 1)):
        slots = outcomes.slots
        assert slots is not None
        assert len(outcomes) == len(slots) == 3 * len(block)
        chosen = outcomes.action[outcomes.action_start[:-1]].reshape(-1, 3)
        assert all(len(set(row)) == 3 for row in chosen.tolist())
        assert np.diff(outcomes.action_start).reshape(-1, 3).tolist() == [[4, 3, 2]] * len(block)


def test_a_prediction_is_a_row_for_each_slot_and_changes_nothing() -> None:
    with pytest.warns(UserWarning, match="19 problems in the input"):
        workspace = Workspace(ccb_explore_adf=True).fit(SLOT_STREAMS["slots"](60, 3))
    before = workspace.weights.copy()
    first, again = workspace.predict(EVENT), workspace.predict(EVENT)
    assert first.shape == (2, 3)
    assert (first == again).all()
    np.testing.assert_allclose(first.sum(axis=1), 1, rtol=1e-6)
    assert (first[1] == 0).sum() == 1
    assert (workspace.weights == before).all()


def test_by_action_needs_a_single_event() -> None:
    workspace = Workspace(ccb_explore_adf=True)
    [(_, outcomes)] = workspace.stream(2 * f"{EVENT}\n".encode())
    with pytest.raises(InputError, match="there are 2"):
        outcomes.by_action()


@pytest.mark.parametrize("options", [{}, {"automl": 2}, {"automl": 2, "vw_exact": True}])
def test_an_event_without_a_slot_teaches_nothing(options: dict[str, Any]) -> None:
    options = {"ccb_explore_adf": True, **options}
    workspace, other = Workspace(**options), Workspace(**options)
    empty = EVENT[: EVENT.index("ccb slot")] + "\n"
    for event in (event.text() for event in draw_events(20, 3)):
        workspace.fit(event.encode())
        assert workspace.predict(empty).shape == workspace.learn(empty).shape == (0, 3)
        other.fit(event.encode())
    assert workspace.weights.tobytes() == other.weights.tobytes()
    assert workspace.searching.n_learnt == other.searching.n_learnt


def wide(name: str, n: int) -> str:
    return f"|{name} " + " ".join(f"{name}{i}" for i in range(n))


@pytest.mark.parametrize("slots", [[2], [0, 0]], ids=str)
def test_buffers_hold_the_widest_slot_of_a_block(slots: list[int]) -> None:
    """The products of the last event need more room than the slots of the events before it."""
    small = "ccb shared |U u\nccb action |A a\nccb action |A b\n"
    events = [small + n * "ccb slot |\n" + "\n" for n in slots]
    last = f"ccb shared {wide('U', 700)}\nccb action {wide('A', 700)}\nccb action |A b\n"
    last += "ccb slot 1:-1:0.5 |\nccb slot 0:-1:0.5 |\n\n"
    options: dict[str, Any] = {"ccb_explore_adf": True, "quadratic": "::"}
    together, apart = Workspace(**options).fit("".join([*events, last]).encode()), Workspace(**options)
    for event in (*events, last):
        apart.learn(event)
    assert together.weights.tobytes() == apart.weights.tobytes()


def test_buffers_hold_the_constant_and_the_slot_index() -> None:
    """VW's wildcards leave such a namespace out, so there are no products."""
    options: dict[str, Any] = {"ccb_explore_adf": True, "vw_exact": True, "automl": 2}
    event = f"ccb shared {wide('é', 65_533)}\nccb action |é a\nccb slot 0:-1:0.5 |é s\n\n"
    assert np.isfinite(Workspace(**options).fit(event.encode()).weights).all()


def test_slots_are_drawn_independently() -> None:
    workspace = Workspace(ccb_explore_adf=True, epsilon=1.0)
    text = "ccb shared |U u\n" + "ccb action |A a\n" * 6 + "ccb slot |\n" * 6
    chosen = [int(np.flatnonzero(row == 0).size) for row in workspace.predict(text)]
    assert chosen == [0, 1, 2, 3, 4, 5]
    [block] = read(text.encode(), ccb_explore_adf=True)
    outcomes = workspace.predict_block(block)
    places = outcomes.action[outcomes.action_start[:-1]].tolist()
    assert places != sorted(places)


def test_model_equals_that_of_a_bandit_before_slots_differ() -> None:
    events = "".join(
        f"ccb shared |U u{i % 3}\nccb action |A a\nccb action |A b\nccb slot {i % 2}:{i % 5}:0.5 |\n\n"
        for i in range(30)
    )
    single = events.replace("ccb shared", "shared")
    lines = []
    for event in single.split("\n\n")[:-1]:
        shared, a, b, slot = event.split("\n")
        logged, cost, p = slot.split()[2].split(":")
        actions = [line.removeprefix("ccb action ") for line in (a, b)]
        actions[int(logged)] = f"0:{cost}:{p} {actions[int(logged)]}"
        lines += [shared, *actions, ""]
    slots = Workspace(ccb_explore_adf=True, quadratic="UA").fit(events.encode())
    bandit = Workspace(cb_explore_adf=True, quadratic="UA").fit("\n".join(lines).encode())
    assert slots.weights.tobytes() == bandit.weights.tobytes()


@pytest.mark.parametrize("search", [{}, {"oracle_type": "one_diff"}, {"estimator": "robust"}])
def test_search_crosses_all_namespaces_with_the_slot_index(search: dict[str, Any]) -> None:
    workspace = Workspace(ccb_explore_adf=True, automl=3, default_lease=50, **search)
    workspace.fit(SLOT_STREAMS["slots_rewards"](400, 2))
    used = set(workspace.searching.interactions(0))
    assert {(name, b"\x8c") for name in (b"A", b"S", b"U")} <= used
    assert workspace.searching.n_learnt == 1200


def test_no_action_is_offered_twice_if_a_decision_falls_between_two_slots() -> None:
    workspace = Workspace(ccb_explore_adf=True, automl=4, default_lease=15)
    for _, outcomes in workspace.stream(SLOT_STREAMS["slots_rewards"](200, 2)):
        assert outcomes.slots is not None
        offered = np.split(outcomes.action, outcomes.action_start[1:-1])
        same_event = outcomes.slots.event[1:] == outcomes.slots.event[:-1]
        for before, after in zip(np.flatnonzero(same_event), np.flatnonzero(same_event) + 1, strict=True):
            assert offered[before][0] not in offered[after]


@pytest.mark.parametrize(
    "options",
    [
        {"leave_duplicate_interactions": True, "quadratic": "UA"},
        {"automl": 2, "oracle_type": "rand"},
        {"automl": 2, "interaction_type": "cubic"},
        {"regcb": True, "quadratic": ["UA", "::"]},
    ],
)
def test_exact_mode_rejects_unsupported_options(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match="not reproduced by --vw_exact"):
        Workspace(ccb_explore_adf=True, vw_exact=True, **options)


def test_events_and_blocks_have_slots(tmp_path: Path) -> None:
    path = tmp_path / "events.blocks"
    assert convert(EVENT.encode(), path, ccb_explore_adf=True) == 1
    assert (Workspace(ccb_explore_adf=True).fit(path).weights == 0).all()
    [event] = read(EVENT.encode(), ccb_explore_adf=True).events()
    assert (len(event.actions), len(event.slots)) == (3, 2)
