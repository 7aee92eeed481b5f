"""``ClusterPolicy``: the base class of policies, which score actions, and the loop over the scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.errors import OptionError

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from onlineauto.cluster.history import Record
    from onlineauto.cluster.policies.gpu_policy import GpuCluster, GpuJob
    from onlineauto.cluster.policies.situation import Bools, Floats, Ints, Situation

NEVER = -np.inf
"""The score of an action that is never chosen."""
Watch = Callable[["Situation", "Bools", "Ints"], None]
"""Receives each action of an allocation: the situation before it, the choices and the actions."""


def scores(worker: Floats, server: Floats, both: Floats, nothing: float = 0.0) -> Floats:
    """Join the scores of a worker, a server, both and nothing into one array: [B, J] to [B, 3J + 1]."""
    last = np.full((len(worker), 1), nothing)
    return np.concatenate([worker, server, both, last], 1)


def bundles(situation: Situation, score: Floats, nothing: float = -1e18) -> Floats:
    """Return scores for whole bundles only: a worker, and a server if the job can use another one.

    `score`, float64[B, J], is that of one more bundle; `nothing` is that of the end of the allocation.
    """
    takes = situation.servers < situation.most_servers
    never = np.full_like(score, NEVER)
    return scores(np.where(takes, NEVER, score), never, np.where(takes, score, NEVER), nothing)


class ClusterPolicy(ABC):
    """Divides a cluster between jobs by scoring 3J + 1 actions.

    A policy does not loop, does not count resources and cannot allocate too much. `allocate` takes the
    possible action with the highest score and asks for the scores of the next situation, until the action
    "nothing more" is best. Scores depend only on the situation and on the records that were observed. In a
    cluster with several kinds of GPUs, scores see all GPUs as one kind.

    Attributes
    ----------
    name : str
        The name in the registry, or any other.
    interval : float
        Seconds between two decisions in a replay of a trace.
    is_rigid : bool
        True if each job of a trace has the number of GPUs and the batch size that its user asked for.
    asks : bool
        True if a job of a trace gets at most the number of GPUs that its user asked for.
    """

    name: ClassVar[str]
    interval: float = 360.0
    is_rigid: bool = False
    asks: bool = False
    scores_rows: bool = True  # False for a policy that reads `gpus` of a situation, and no rows.

    @abstractmethod
    def score(self, situation: Situation) -> Floats:
        """Return the score of each action in each cluster: float64[B, 3J + 1].

        The last score belongs to the action "nothing more". Impossible actions may have any score except NaN.
        An action with minus infinity is chosen only if a job cannot begin otherwise.
        """

    def see(self, situation: Situation) -> None:  # noqa: B027
        """Receive the situation of a slot before the first decision."""

    def keep(self, path: str | os.PathLike[str]) -> None:  # noqa: B027
        """Continue with what an earlier policy has learned and written to a file; write it in each slot."""

    def observe(self, records: Sequence[Record]) -> None:  # noqa: B027
        """Learn from the records of the slot that has ended."""

    def decide(self, situation: Situation, *, watch: Watch | None = None) -> Situation:
        """Return a situation without allocations with the best actions; see `allocate`."""
        self.see(situation)
        nothing = 3 * situation.places
        active = np.ones(len(situation.valid), np.bool_)
        while True:
            choices = situation.choices()
            actions = np.where(active, best_choices(self.score(situation), choices), nothing)
            if watch is not None:
                watch(situation, choices, actions)
            active &= actions != nothing
            if not active.any():
                break
            situation = situation.after(actions)
        if situation.gpus is None:
            return situation
        return situation.with_kinds(situation.gpus.choose_kinds(situation.workers[0]))

    def begin(self) -> None:  # noqa: B027
        """Forget earlier replays."""

    def runs(self, job: GpuJob, cluster: GpuCluster) -> bool:
        """Return true if the policy can give a job of a trace any GPUs of the cluster."""
        return any(job.sizes(cluster, kind, rigid=self.is_rigid) for kind in cluster.nodes)


def best_choices(score: Floats, choices: Bools) -> Ints:
    """Return the choice with the highest score in each cluster.

    If all scores are minus infinity, the choice is "nothing more", or the first choice if a job must begin.
    """
    allowed = np.where(choices, score, -np.inf)
    if np.isnan(allowed).any():
        raise OptionError("a policy scored an action as NaN: scores are numbers, or minus infinity for never")
    highest = allowed.argmax(1)
    none = np.isneginf(allowed[np.arange(len(highest)), highest])
    instead = np.where(choices[:, -1], score.shape[1] - 1, choices.argmax(1))
    return np.asarray(np.where(none, instead, highest))


def allocate(policy: ClusterPolicy, situation: Situation, *, watch: Watch | None = None) -> Situation:
    """Return the allocation for a slot: take the best action of the policy until it is "nothing more".

    Each job with a row gets its first bundle (a worker, and a server if it takes any) before any job gets a
    second bundle, as long as the bundle fits. The policy chooses the order.

    Parameters
    ----------
    policy : Policy
        Scores the actions.
    situation : Situation
        The clusters; earlier allocations in it are ignored.
    watch : callable, optional
        Called for each action with the situation before it, the choices and the actions.

    Returns
    -------
    Situation
        The allocation is in `workers` and `servers`.

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
    return policy.decide(situation.without_allocations(), watch=watch)
