"""The conformance suite of explorers."""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

_SUM = 1e-5
_LEARNT = (0, 1, 100, 10**6)
_TIED = ((0.0, 0.0, 0.0), (0.1, 0.1, 0.3))
"""Scores with equal values; the scores of a model that has learnt nothing are all equal."""
_SCORES = ((0.5,), (0.1, 0.9), (0.3, 0.1, 0.7), (-1.0, 0.0, 0.25, -0.5), (0.2, 0.6, 0.4, 0.0, 0.8))


class ExplorerLike(Protocol):
    """An object that turns scores into a pmf, such as `onlineauto.explorers.policy.Policy`."""

    floor: float
    """Smallest probability of an action times the number of actions; 0 if there is no such bound."""

    @property
    def needs_plausible(self) -> bool:
        """True if `pmf` requires the plausible costs."""

    def pmf(
        self,
        scores: ArrayLike,
        *,
        learnt: int = 0,
        costs: tuple[float, float] = (0.0, 1.0),
        plausible: ArrayLike | None = None,
    ) -> NDArray[np.float32]:
        """Return the probability of each action, from its predicted cost."""


def check_explorer(explorer: ExplorerLike) -> None:
    """Check an explorer against all requirements of users of its logged choices.

    Calls `check_pmf` for several events, each after several numbers of learnt events.

    Parameters
    ----------
    explorer : ExplorerLike
        The explorer, registered or not.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement and the scores.

    Examples
    --------
    >>> from onlineauto.explorers.policy import Policy
    >>> check_explorer(Policy(softmax=True, epsilon=0.1))
    """
    for scores in _SCORES + _TIED:
        for learnt in _LEARNT:
            check_pmf(explorer, scores, learnt=learnt)


def check_pmf(
    explorer: ExplorerLike,
    scores: Sequence[float],
    *,
    learnt: int = 0,
    reach: float = 0.25,
) -> None:
    """Check the pmf that an explorer returns for one event.

    The probabilities sum to one. None is negative or less than the floor. The same scores give the same
    probabilities again. An action's probability does not depend on the order of the actions, unless scores
    are equal.

    Parameters
    ----------
    explorer : ExplorerLike
        The explorer, registered or not.
    scores : sequence of float
        Predicted cost of each action.
    learnt : int
        Number of events learnt before.
    reach : float
        Distance of the plausible costs from the predicted cost, if the explorer needs plausible costs.

    Raises
    ------
    AssertionError
        If a requirement is violated; the message names the requirement.
    """
    costs = min(0.0, *scores, 0.0), max(0.0, *scores, 0.0)
    orders = (
        permutations(range(len(scores)))
        if len(scores) < 5
        else (range(len(scores)), range(len(scores))[::-1])
    )
    expected = _pmf(explorer, scores, learnt, costs, reach)
    where = f"scores {list(scores)}, {learnt} events learnt: {expected.tolist()}"
    assert expected.shape == (len(scores),), f"not a probability for each action: {where}"
    assert np.isfinite(expected).all(), f"not all are finite: {where}"
    assert expected.min() >= 0, f"one is negative: {where}"
    assert abs(expected.sum(dtype=np.float64) - 1) <= _SUM, f"the sum is not 1: {where}"
    least = explorer.floor / len(scores)
    assert expected.min() >= least * (1 - _SUM), f"one is below the floor of {least:g}: {where}"
    for order in orders if len(set(scores)) == len(scores) else ():
        again = _pmf(explorer, [scores[action] for action in order], learnt, costs, reach)
        same = np.allclose(again, expected[list(order)], atol=_SUM, rtol=0)
        assert same, f"actions in the order {list(order)} have {again.tolist()}; {where}"


def _pmf(
    explorer: ExplorerLike, scores: Sequence[float], learnt: int, costs: tuple[float, float], reach: float
) -> NDArray[np.float32]:
    plausible = [(score - reach, score + reach) for score in scores] if explorer.needs_plausible else None
    return explorer.pmf(scores, learnt=learnt, costs=costs, plausible=plausible)
