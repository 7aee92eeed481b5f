"""A small world for bandits: who likes what."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from onlineauto import AutoML, AutoMLClassifier, AutoMLRegressor, Workspace

USERS = ("tom", "ann", "kim")
ACTIONS: list[dict[str, Any]] = [{"article": name, "price": {"net": 0.5 * i}} for i, name in enumerate("xyz")]


def context(step: int) -> dict[str, Any]:
    return {"user": USERS[step % 3], "new": step % 2 == 0, "tags": ["a", "b"][: step % 3], "age": None}


def reward(step: int, action: int) -> float:
    return float(action == step % 3)


def serve(bandit: AutoML, steps: int, *, begin: int = 0) -> list[int]:
    """Rank and learn; return the actions."""
    actions = []
    for step in range(begin, begin + steps):
        choice = bandit.rank(context(step), ACTIONS)
        bandit.learn(choice, reward=reward(step, choice.action))
        actions.append(choice.action)
    return actions


def saved(model: AutoML | AutoMLRegressor | AutoMLClassifier | Workspace) -> bytes:
    """Return the content of a model's file."""
    file = io.BytesIO()
    model.save(file)
    return file.getvalue()


def logged(steps: int) -> Iterator[dict[str, Any]]:
    """Yield events logged by a policy that chooses uniformly."""
    for step in range(steps):
        action = (7 * step // 3) % 3
        yield {
            "context": context(step),
            "actions": ACTIONS,
            "chosen": action,
            "reward": reward(step, action),
            "probability": 1 / 3,
        }
