"""Decisions that wait: bounds, time to live, default rewards."""

from __future__ import annotations

import copy
import math
import multiprocessing
import os
import pickle
import zlib
from decimal import Decimal
from typing import Any

import msgspec
import numpy as np
import pytest

from onlineauto import AutoML, InputError, OptionError
from onlineauto.api.decisions.decisions import EventIds
from onlineauto.api.decisions.pending import Pending
from tests.api.events import ACTIONS, context, saved

pytestmark = pytest.mark.lane("quick")


class _Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_decision_expires() -> None:
    clock = _Clock()
    bandit = AutoML(time_to_live=10, clock=clock)
    early = bandit.rank(context(0), ACTIONS)
    clock.now += 6
    late = bandit.rank(context(1), ACTIONS)
    clock.now += 5
    with pytest.raises(InputError, match="has expired: it waited longer than 10 seconds"):
        bandit.learn(early, reward=1)
    bandit.learn(late, reward=1)
    assert (bandit.events, bandit.pending, bandit.expired) == (1, 0, 1)
    with pytest.raises(InputError, match="has expired"):
        bandit.learn(early, reward=1)


def test_the_oldest_decision_expires_beyond_the_limit() -> None:
    bandit = AutoML(max_pending=3)
    choices = [bandit.rank(context(step), ACTIONS) for step in range(5)]
    assert (bandit.pending, bandit.expired) == (3, 2)
    with pytest.raises(InputError, match=r"has expired: .* or too many did"):
        bandit.learn(choices[1], reward=1)
    bandit.learn(choices[2], reward=1)


def test_the_limit_also_holds_for_decisions_without_a_time_limit() -> None:
    bandit = AutoML(max_pending=2, time_to_live=math.inf)
    for i in range(5):
        bandit.rank(context(i), ACTIONS)
    assert (bandit.pending, bandit.expired) == (2, 3)


def test_a_default_reward_is_learnt_when_a_decision_expires() -> None:
    clock = _Clock()
    bandit = AutoML(time_to_live=10, clock=clock, default_reward=-2)
    for step in range(50):
        bandit.rank(context(step), ACTIONS)
    clock.now += 11
    bandit.rank(context(0), ACTIONS)
    assert 0 < bandit.events < 50  # a few at a time
    left = 50 - bandit.events
    assert bandit.expire() == left
    assert (bandit.events, bandit.expired, bandit.pending) == (50, 50, 1)
    assert bandit.average_reward == pytest.approx(-2, rel=0.2)


def test_ids_of_ended_decisions_are_forgotten() -> None:
    bandit = AutoML(max_pending=2)
    first = bandit.rank(context(0), ACTIONS)
    bandit.learn(first, reward=1)
    for step in range(3):
        bandit.learn(bandit.rank(context(step), ACTIONS), reward=1)
    with pytest.raises(InputError, match="was not ranked by this model"):
        bandit.learn(first, reward=1)


def test_a_copy_on_another_machine_counts_from_its_own_clock() -> None:
    clock = _Clock()
    bandit = AutoML(time_to_live=10, clock=clock)
    choice = bandit.rank(context(0), ACTIONS)
    clock.now += 4
    data = pickle.dumps(bandit)
    copied = pickle.loads(data)  # noqa: S301 - our own bytes
    other = copied._decisions.waiting.clock
    assert other.now == 104
    other.now += 5
    copied.learn(choice, reward=1)
    assert bandit.pending == 1


def test_a_reward_can_be_learnt_once_its_decision_has_waited() -> None:
    clock = _Clock()
    with pytest.raises(OptionError, match="learn_at takes 'reward' or 'wait', not 'now'"):
        AutoML(learn_at="now")  # type: ignore[arg-type]
    bandit = AutoML(time_to_live=10, clock=clock, default_reward=0, learn_at="wait")
    twin = AutoML(default_reward=0)
    for step in range(40):
        choice = bandit.rank(context(step), ACTIONS)
        clicked = step % 8 == 0
        if clicked:
            bandit.learn(choice, reward=1)
            with pytest.raises(InputError, match="has its reward already, and is learnt once it has waited"):
                bandit.learn(choice, reward=1)
        known = {"action": choice.action, "probability": choice.probability}
        twin.learn(context(step), ACTIONS, **known, reward=float(clicked))
    assert (bandit.events, bandit.pending) == (0, 40)
    bandit = pickle.loads(pickle.dumps(bandit))  # noqa: S301 - our own bytes
    late = _Clock()
    late.now = 5_000.0
    bandit = AutoML.load(saved(bandit), clock=late)
    assert (bandit.events, bandit.pending, bandit.expire()) == (0, 40, 0)
    late.now += 11
    assert bandit.expire() == 40
    assert (bandit.events, bandit.expired, bandit.pending) == (40, 35, 0)
    assert bandit.average_reward == pytest.approx(5 / 40, abs=0.1)
    assert (bandit.predict(context(0), ACTIONS) == twin.predict(context(0), ACTIONS)).all()


@pytest.mark.parametrize(
    "value", [2**70, np.float32(1.5), np.array([1.0, 2.0]), {"a"}, ("a", "b"), Decimal("2.5"), None, True]
)
def test_a_file_keeps_waiting_decisions_with_any_values(value: Any) -> None:
    bandit = AutoML(live_configs=None, learn_at="wait", time_to_live=10, clock=_Clock())
    twin = AutoML(live_configs=None)
    event = {"u": {"k": value, 1: 2.0}, "s": "x"}, [{"a": value}, {"b": np.str_("w")}]
    choice = bandit.rank(*event)
    bandit.learn(choice, reward=1)
    twin.learn(*event, action=choice.action, probability=choice.probability, reward=1)
    clock = _Clock()
    loaded = AutoML.load(saved(bandit), clock=clock)
    clock.now += 11
    assert loaded.expire() == 1
    assert (loaded.predict(*event) == twin.predict(*event)).all()


@pytest.mark.parametrize(
    "rows",
    [
        b"",
        [("e", [{}, [{}]])],
        [("e", {"event": [{}, [{}]], "action": 1, "probability": 0.5, "deadline": 1.0})],
        [("e", {"event": [{}, 3], "action": 0, "probability": 0.5, "deadline": 1.0})],
        [("e", {"event": [{}, [{}]], "action": 0, "probability": 0.0, "deadline": 1.0})],
    ],
)
def test_malformed_waiting_decisions_are_refused(rows: Any) -> None:
    packed = rows if rows == b"" else zlib.compress(msgspec.msgpack.encode(rows))
    with pytest.raises(ValueError, match="wait"):
        Pending(limit=1, time_to_live=1).unpack(packed)


def test_copies_give_other_ids() -> None:
    ids = EventIds()
    first = next(ids)
    assert next(copy.deepcopy(ids))[:12] != first[:12]
    assert next(ids)[:13] == first[:13]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_gives_other_ids() -> None:
    ids = EventIds()
    first = next(ids)
    fork = multiprocessing.get_context("fork")
    queue = fork.SimpleQueue()
    child = fork.Process(target=lambda: queue.put(next(ids)))
    child.start()
    assert queue.get()[:12] != first[:12]
    child.join()
    assert next(ids)[:13] == first[:13]
