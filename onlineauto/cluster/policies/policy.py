"""``Policy``: scores the actions of a slot. The base class of all, and the one loop that follows it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints, Situation


class Policy(ABC):
    """Decides who gets how much of a cluster, as a score of the 3J + 1 actions.

    A policy does not loop, does not count resources and cannot give away too much: `allocate` does what has
    the highest score among what is possible, shows the policy the situation after it, and so on until
    nothing more is best. Scores depend on the situation and on what was observed, and on nothing else.

    Attributes
    ----------
    name : str
        The name in the registry, or any other.
    """

    name: ClassVar[str]

    @abstractmethod
    def score(self, situation: Situation) -> Floats:
        """Return the score of each action in each cluster: float64[B, 3J + 1].

        The last one is that of giving nothing more. Actions that are not possible may have any score, but no
        score is NaN; minus infinity is not chosen, unless a job can only be begun so.
        """

    def observe(self, records: Sequence[Record]) -> None:  # noqa: B027
        """Learn from what jobs did in the slot that has ended."""


def best(score: Floats, choices: Bools) -> Ints:
    """Return the choice with the highest score in each cluster.

    If all are minus infinity it is nothing more; or the first choice, where a job has to be begun.

    Raises
    ------
    OptionError
        The score of a choice is NaN.
    """
    allowed = np.where(choices, score, -np.inf)
    if np.isnan(allowed).any():
        raise OptionError("a policy scored an action as NaN: scores are numbers, or minus infinity for never")
    found = allowed.argmax(1)
    none = np.isneginf(allowed[np.arange(len(found)), found])
    instead = np.where(choices[:, -1], score.shape[1] - 1, choices.argmax(1))
    return np.asarray(np.where(none, instead, found))


def allocate(
    policy: Policy, situation: Situation, *, watch: Callable[[Situation, Bools, Ints], None] | None = None
) -> Situation:
    """Divide a slot: do what the policy scores highest until nothing more is best.

    A job that has a row is given its first bundle, a worker and a server if it takes any, before any job gets
    a second one, as long as it fits; the policy chooses in which order.

    Parameters
    ----------
    policy : Policy
        Scores the actions.
    situation : Situation
        The clusters; what was given away in it before is not.
    watch : callable, optional
        Is called for each action with the situation before it, the choices and the actions.

    Returns
    -------
    Situation
        Its `workers` and `servers` are the answer.

    Examples
    --------
    >>> from onlineauto.cluster.policies import Fair, Row, Situation
    >>> def job(cpu, memory):
    ...     worker = {"CPU": cpu, "memory": memory}
    ...     return Row(kind="study", age=0, done=0, remaining=1, worker=worker, server={})
    >>> situation = Situation.of([job(1, 4), job(3, 1)], {"CPU": 9, "memory": 18}, places=2)
    >>> allocate(Fair(), situation).workers  # the example of the paper on dominant resource fairness
    array([[3, 2]])
    """
    situation = situation.cleared()
    nothing = 3 * situation.places
    goes_on = np.ones(len(situation.valid), np.bool_)
    while True:
        choices = situation.choices()
        actions = np.where(goes_on, best(policy.score(situation), choices), nothing)
        if watch is not None:
            watch(situation, choices, actions)
        goes_on &= actions != nothing
        if not goes_on.any():
            return situation
        situation = situation.after(actions)
