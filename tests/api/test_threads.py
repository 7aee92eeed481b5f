"""Threads share a bandit."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from onlineauto import AutoML
from tests.api.events import ACTIONS, context, reward

if TYPE_CHECKING:
    from onlineauto import Choice

RANKING, EACH = 7, 150


def test_seven_threads_rank_and_one_learns() -> None:
    bandit = AutoML(seed=1)
    decided: SimpleQueue[tuple[int, Choice] | None] = SimpleQueue()
    errors: list[BaseException] = []
    wrong: list[Choice] = []

    def rank() -> None:
        try:
            for step in range(EACH):
                choice = bandit.rank(context(step), ACTIONS)
                if abs(choice.pmf.sum() - 1) > 1e-5 or choice.probability != choice.pmf[choice.action]:
                    wrong.append(choice)
                decided.put((step, choice))
        except BaseException as error:
            errors.append(error)
        finally:
            decided.put(None)

    def learn() -> None:
        left = RANKING
        try:
            while left:
                found = decided.get()
                if found is None:
                    left -= 1
                    continue
                step, choice = found
                bandit.learn(choice.event_id, reward=reward(step, choice.action))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=rank) for _ in range(RANKING)] + [threading.Thread(target=learn)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    assert not wrong
    assert (bandit.events, bandit.pending) == (RANKING * EACH, 0)
    for step in range(EACH):  # threads may have ranked most events before the first was learnt
        choice = bandit.rank(context(step), ACTIONS)
        bandit.learn(choice.event_id, reward=reward(step, choice.action))
    assert [int(np.argmax(bandit.predict(context(step), ACTIONS))) for step in range(3)] == [0, 1, 2]
