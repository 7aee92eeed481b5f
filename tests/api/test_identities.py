"""Identities of a bandit: columns whose numbers are names, at whatever time they become known."""

from __future__ import annotations

from typing import Any

import pytest

from onlineauto import AutoML

pandas = pytest.importorskip("pandas")


@pytest.mark.parametrize("learn_at", ["reward", "wait"])
def test_decisions_that_wait_get_the_names_of_identities(learn_at: Any) -> None:
    frame = {"user": ["x", "y"] * 20, "arm": [1, 2] * 20, "reward": [1.0, 0.0] * 20, "p": [0.5] * 40}

    def bandit(arm: Any) -> AutoML:
        found = AutoML(seed=1, learn_at=learn_at, max_pending=1)
        waiting = found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        found.fit(pandas.DataFrame(frame), actions="arm", reward="reward", probability="p")
        found.learn(waiting, reward=1)
        found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        found.rank({"user": "x"}, [{"arm": arm(1)}, {"arm": arm(2)}])
        return found

    assert bandit(int).workspace.weights.tobytes() == bandit(str).workspace.weights.tobytes()
    assert bandit(int).events == 41
