"""Feedback of the Open Bandit Pipeline: conversion to events, and of a bandit to a policy.

The feedback is a dict of arrays from ``dataset.obtain_batch_bandit_feedback()``; the pipeline itself need not
be installed.

>>> import numpy as np
>>> from onlineauto import AutoML
>>> feedback = {"n_rounds": 400, "n_actions": 2, "context": np.ones((400, 1)), "action_context": None,
...             "action": np.arange(400) % 2, "position": None, "reward": np.arange(400) % 2,
...             "pscore": np.full(400, 0.5)}
>>> bandit = AutoML().fit(events_of(feedback))
>>> action_dist_of(bandit, feedback)[0].round(3)
array([[0.005],
       [0.995]])
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from onlineauto.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from onlineauto.api.bandit import AutoML

__all__ = ["action_dist_of", "events_of"]

_KEYS = ("n_rounds", "n_actions", "context", "action", "reward")


class _Rounds(chain[dict[str, Any]]):
    """Rounds as events, and the columns whose numbers are names."""

    name_columns = ("action^action",)


def events_of(feedback: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rounds of logged feedback as events for `AutoML.fit`.

    Without ``pscore``, actions count as drawn uniformly. A model that learns them knows the action 0 as
    ``{"action": 0}`` and as ``{"action": "0"}``.

    Raises
    ------
    InputError
        The feedback lacks a key, or its arrays are not of the same length.
    """
    return _Rounds(_rounds_of(feedback))


def _rounds_of(feedback: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rounds of logged feedback as events."""
    missing = [key for key in _KEYS if feedback.get(key) is None]
    if missing:
        raise InputError(f"bandit feedback has no {', '.join(missing)}")
    n, actions = int(feedback["n_rounds"]), _actions(feedback)
    pscore = feedback.get("pscore")
    columns = (
        feedback["action"],
        feedback["reward"],
        np.full(n, 1 / len(actions)) if pscore is None else pscore,
    )
    if any(len(column) != n for column in (feedback["context"], *columns)):
        raise InputError(f"bandit feedback has arrays that do not have its {n} rounds")
    logged = zip(*(np.asarray(column).tolist() for column in columns), strict=True)
    for context, (action, reward, probability) in zip(_contexts(feedback), logged, strict=True):
        chosen = {"chosen": action, "reward": reward, "probability": probability}
        yield {"context": context, "actions": actions, **chosen}


def action_dist_of(bandit: AutoML, feedback: Mapping[str, Any]) -> NDArray[np.float64]:
    """Return the probability of each action in each round, in the form of the pipeline's estimators.

    The result is float64[n_rounds, n_actions, len_list]. Every position of a list has the same probabilities,
    those of the round's position.
    """
    actions = _actions(feedback)
    rows = np.array([bandit.predict(context, actions) for context in _contexts(feedback)], float)
    position = feedback.get("position")
    length = 1 if position is None else int(np.max(position)) + 1
    return np.repeat((rows / rows.sum(axis=1, keepdims=True))[:, :, None], length, axis=2)


def _contexts(feedback: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the features of each round."""
    position = feedback.get("position")
    for number, row in enumerate(np.asarray(feedback["context"]).tolist()):
        context: dict[str, Any] = {"context": {f"x{i}": value for i, value in enumerate(row)}}
        if position is not None:
            context["position"] = str(int(position[number]))
        yield context


def _actions(feedback: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the features of each action: its number, and its context if there is one."""
    actions: list[dict[str, Any]] = [{"action": str(number)} for number in range(int(feedback["n_actions"]))]
    features = feedback.get("action_context")
    if features is not None:
        for action, row in zip(actions, np.asarray(features).tolist(), strict=True):
            action["action_context"] = {f"x{i}": value for i, value in enumerate(row)}
    return actions
