"""``WarmUp`` and ``Improving``: settings of the training of a policy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Settings of the imitation of a teacher.

    Attributes
    ----------
    traces, jobs : int
        Number of simulated clusters in which the teacher decides, and number of jobs in each.
    steps, batch : int
        Number of steps of Adam, and number of decisions in each step.
    rate : float
        The learning rate.
    smoothing : float
        The part of the probability that is spread evenly over all choices (label smoothing).
    rates : tuple of float
        Rates of arrival of the clusters, as multiples of the rate of the workload.
    """

    traces: int = 32
    jobs: int = 40
    steps: int = 1500
    batch: int = 256
    rate: float = 2e-3
    smoothing: float = 0.1
    rates: tuple[float, ...] = (0.6, 1.0, 1.6, 2.4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Improving:
    """Settings of the reinforcement learning of a policy.

    Attributes
    ----------
    slots : int
        Number of slots of each cluster.
    clusters : int
        Number of parallel clusters; one call of the network scores all of them.
    episode : int
        Number of slots after which all clusters restart with other jobs.
    rates : tuple of float
        Rates of arrival of the clusters, in cyclic order, as multiples of the rate of the workload.
    rate, critic_rate : float
        Learning rates of the policy and of the critic; the rate of the policy decreases to a fifth.
    entropy : float
        Weight of the entropy of decisions, which encourages exploration.
    trace : float
        Lambda of the value targets: the weight of later decisions of a slot in the targets of earlier ones.
    clip : float
        Maximum relative change of the probability of a decision in the loss (PPO).
    replay : int
        Number of stored decisions; 0 to learn from decisions of the last slot only.
    batch, updates : int
        Number of decisions of an update, and number of updates in a slot.
    explore : float
        Probability of adding a worker or a server to a job with a disproportion of workers and servers.
    check : int
        Number of slots after which the policy is compared with the best one so far.
    permuted : bool
        True to shuffle rewards among clusters and slots: a negative control, which cannot learn.
    """

    slots: int = 800
    clusters: int = 16
    episode: int = 100
    rates: tuple[float, ...] = (0.6, 1.0, 1.6, 2.4)
    rate: float = 1e-3
    critic_rate: float = 2e-3
    entropy: float = 0.01
    trace: float = 0.5
    clip: float = 0.2
    replay: int = 8192
    batch: int = 256
    updates: int = 4
    explore: float = 0.1
    check: int = 100
    permuted: bool = False
