"""`rank_many` makes the decisions of `rank`, and each fails alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest

from onlineauto import AutoML, Choice, InputError
from tests.api.events import ACTIONS, context, reward

ARTICLES: list[dict[str, Any]] = [
    {"article": "politics"},
    {"article": "sports"},
    {"article": "music", "length": 3.5},
]


def asked(number: int) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    return {"user": f"u{number % 5}", "age": number % 7}, ARTICLES[: 2 + number % 2], f"e{number}"


def taught(**options: Any) -> AutoML:
    bandit = AutoML(seed=3, **options)
    for number in range(60):
        context, actions, _ = asked(number)
        bandit.learn(context, actions, action=0, probability=0.5, reward=float(number % 5 == 0))
    return bandit


def test_rank_many_equals_single_calls_of_rank(tmp_path: Path) -> None:
    one, other = taught(decision_log=tmp_path / "one"), taught(decision_log=tmp_path / "other")
    singles = [one.rank(*asked(number)[:2], event_id=asked(number)[2]) for number in range(50)]
    many = other.rank_many(asked(number) for number in range(50))
    for single, each in zip(singles, many, strict=True):
        assert not isinstance(each, Exception)
        assert (each.action, each.action_id, each.event_id) == (
            single.action,
            single.action_id,
            single.event_id,
        )
        np.testing.assert_array_equal(each.pmf, single.pmf)
    lines = [
        [line.partition(b'"Timestamp"')[0] for line in (tmp_path / name).read_bytes().splitlines()]
        for name in ("one", "other")
    ]
    assert len(lines[0]) == 50
    assert lines[0] == lines[1]
    other.learn(many[7] if not isinstance(many[7], Exception) else "", reward=1)
    assert other.pending == 49


def test_each_of_many_decisions_fails_alone() -> None:
    bandit = AutoML()
    wrong: list[Any] = [asked(0), ({}, []), ({"a": object()}, ARTICLES), asked(0), 5, ({},), asked(1)]
    found = bandit.rank_many(wrong)
    assert [isinstance(each, InputError) for each in found] == [False, True, True, True, True, True, False]
    for index in (1, 2, 3):
        with pytest.raises(InputError) as single:
            bandit.rank(*wrong[index][:2], event_id=wrong[index][2] if index == 3 else None)
        assert str(single.value) == str(found[index])
    assert bandit.pending == 2
    assert bandit.rank_many([]) == []


RANKING, EACH = 7, 150


def test_seven_threads_rank_and_one_learns() -> None:
    bandit = AutoML(seed=1)
    decided: SimpleQueue[tuple[int, Choice] | None] = SimpleQueue()

    def rank(_: int) -> None:
        try:
            for step in range(EACH):
                choice = bandit.rank(context(step), ACTIONS)
                assert choice.pmf.sum() == pytest.approx(1, abs=1e-5)
                assert choice.probability == choice.pmf[choice.action]
                decided.put((step, choice))
        finally:
            decided.put(None)

    with ThreadPoolExecutor(RANKING) as pool:
        ranks, left = pool.map(rank, range(RANKING)), RANKING
        while left:
            found = decided.get()
            if found is None:
                left -= 1
                continue
            step, choice = found
            bandit.learn(choice.event_id, reward=reward(step, choice.action))
        list(ranks)
    assert (bandit.events, bandit.pending) == (RANKING * EACH, 0)
    for step in range(EACH):  # threads may have ranked most events before the first was learnt
        choice = bandit.rank(context(step), ACTIONS)
        bandit.learn(choice.event_id, reward=reward(step, choice.action))
    assert [int(np.argmax(bandit.predict(context(step), ACTIONS))) for step in range(3)] == [0, 1, 2]
