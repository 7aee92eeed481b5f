"""``WarmUp`` and ``Improving``: how a policy is trained."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """Set how a teacher is imitated.

    Attributes
    ----------
    traces, jobs : int
        Simulated clusters, and jobs in each, in which the teacher decides.
    steps, batch : int
        Steps of Adam, and decisions in each.
    rate : float
        The learning rate.
    smoothing : float
        The part of a decision that is spread evenly over all choices.
    rates : tuple of float
        The clusters' rates of arrival, as multiples of that of the workload.
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
    """Set how a policy is improved by reinforcement learning.

    Attributes
    ----------
    slots : int
        Slots that each cluster works for.
    clusters : int
        Clusters beside each other; each decision of all of them is one call of the network.
    episode : int
        Slots after which all clusters begin anew, with other jobs.
    rates : tuple of float
        The clusters' rates of arrival, as multiples of that of the workload, in turn.
    rate, critic_rate : float
        Learning rates of the policy, and of the network that values allocations; the first one falls to a
        fifth.
    entropy : float
        Weight of the entropy of decisions, which keeps trying.
    trace : float
        Lambda: how far the value of later decisions of a slot is traced back to earlier ones.
    clip : float
        By how much the probability of a decision may change before it no longer teaches (PPO).
    replay : int
        Decisions that are kept; 0 learns from those of the last slot alone.
    batch, updates : int
        Decisions of an update, and updates in a slot.
    explore : float
        Probability of giving a job what it is short of, where its workers and servers are out of proportion.
    check : int
        Slots after which the policy is compared with the best one so far.
    permuted : bool
        Shuffle rewards among clusters and slots: a control, which can learn nothing.
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
