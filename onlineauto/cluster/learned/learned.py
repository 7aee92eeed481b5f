"""``Learned``: a policy that imitates decisions, then improves by the progress of jobs; its settings."""

from __future__ import annotations

import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from onlineauto.cluster.learned.guard import Guarded
from onlineauto.cluster.learned.net import draw_weights, features, scores, shapes
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.speeds import Modelled
from onlineauto.errors import InputError, OptionError
from onlineauto.workspace.model_file import encode_tree, read_file, replace_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.history import History, Record
    from onlineauto.cluster.learned.net import Array, Weights
    from onlineauto.cluster.learned.training import Learner
    from onlineauto.cluster.policies.policy import ClusterPolicy
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.policies.speeds import Speeds
    from onlineauto.cluster.simulator.workload import Workload

_COMMITTED = Path(__file__).with_name("packaged.oam")

_FORMAT: Final = 1


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the tree of a file that `Learned.save` or a living policy wrote."""
    try:
        tree = read_file(path)
        if tree.get("policy") != _FORMAT:
            raise InputError("it has no policy of this version")
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: not a policy that Learned.save wrote: {error}") from error
    return tree


def read_arrays(
    path: str | os.PathLike[str], tree: Mapping[str, Any], part: str, like: Mapping[str, tuple[int, ...]]
) -> dict[str, Array]:
    """Return copies of the finite float32 arrays of a part of a tree, of given shapes."""
    arrays = {}
    for name, shape in like.items():
        array = tree.get(part, {}).get(name)
        if not isinstance(array, np.ndarray) or array.dtype != np.float32 or array.shape != shape:
            raise InputError(f"{os.fspath(path)}: not a policy that Learned.save wrote: no {part} {name}")
        if not np.isfinite(array).all():
            raise InputError(f"{os.fspath(path)}: {part} {name} has a number that is not finite")
        arrays[name] = array.copy()
    return arrays


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


class Learned(Modelled):
    """Score actions by a small network: DL2, adapted to one machine.

    The network reads each job separately and the mean of all jobs, so any number of jobs is possible. It
    reads the observed speeds of jobs, and not their kinds: it can decide about jobs of any kind after their
    first slot. A policy that is `live` improves by each slot of the cluster that it divides.

    Source: Peng et al., *DL2: A deep learning-driven scheduler for deep learning clusters*, TPDS 2021.
    docs/concepts/cluster.md lists the differences and the measured effect.

    Parameters
    ----------
    weights : Weights
        Weights of the network.
    critic : Weights, optional
        Weights of a second network, which estimates the progress of jobs under an allocation. Training needs
        it, and begins with random weights if there are none.
    speeds : Speeds, optional
        The speeds of jobs; by default they are learned from the history.

    Examples
    --------
    >>> from onlineauto.cluster import Row, Situation, allocate
    >>> policy = Learned.untrained()
    >>> job = Row(kind="study", age=0, done=0, remaining=5, worker={"CPU": 1}, server={})
    >>> int(allocate(policy, Situation.of([job], {"CPU": 4})).workers[0, 0]) >= 1
    True
    """

    name: ClassVar[str] = "learned"

    def __init__(self, weights: Weights, critic: Weights | None = None, speeds: Speeds | None = None) -> None:
        super().__init__(speeds)
        self.weights, self.critic = weights, critic
        self._learner: Learner | None = None
        self._path: str | os.PathLike[str] | None = None

    def __repr__(self) -> str:
        """Return the number of weights as text, and whether the policy improves in a cluster."""
        n_weights = sum(array.size for array in self.weights.values())
        return f"Learned of {n_weights:,} weights{', live' if self._learner else ''}"

    @classmethod
    def untrained(cls, *, seed: int = 0) -> Learned:
        """Return a policy with random weights."""
        return cls(draw_weights(np.random.default_rng([0xD12, seed]), 3))

    def copy(self, speeds: Speeds | None = None) -> Learned:
        """Return a policy with copies of the weights, which is not live; with other speeds if given."""
        return Learned(deepcopy(self.weights), deepcopy(self.critic), speeds or self.speeds)

    @classmethod
    def warm_up(
        cls,
        workload: Workload | None = None,
        *,
        history: History | None = None,
        teacher: ClusterPolicy | None = None,
        settings: WarmUp | None = None,
        places: int = 12,
        seed: int = 0,
    ) -> Learned:
        """Return a policy that imitates the decisions of a history, or of a teacher in simulated clusters.

        The policy is trained by cross entropy. Decisions are smoothed over all choices. A policy with a
        teacher that always allocates everything can therefore learn later that leaving resources free may be
        better. The decisions of a history are the increments that lead to the recorded allocation of each
        slot, the smallest share first.

        Parameters
        ----------
        workload : Workload, optional
            Simulated clusters in which a teacher decides; give either a workload or a history.
        history : History, optional
            The history of a cluster, whose recorded decisions are imitated.
        teacher : Policy, optional
            The teacher; by default `Fair`.
        settings : WarmUp, optional
            Settings of the training.
        places : int
            Maximum number of jobs with a row, for a history.
        seed : int
            Seed of traces and weights.

        Raises
        ------
        OptionError
            If there are both a workload and a history, or neither, or a teacher for a history.
        InputError
            If the history has no decisions.
        """
        from onlineauto.cluster.learned.training import imitate, recorded_decisions, teacher_decisions

        settings = settings or WarmUp()
        if workload is not None and history is None:
            decisions = teacher_decisions(workload, teacher or Fair(), settings, seed=seed)
        elif history is not None and workload is None and teacher is None:
            decisions = recorded_decisions(history, places=places)
        else:
            raise OptionError(
                "warm_up: give a workload, in which a teacher decides, or a history of recorded decisions"
            )
        return imitate(decisions, settings, seed=seed)

    def improve(
        self, workload: Workload, *, slots: int = 800, settings: Improving | None = None, seed: int = 0
    ) -> Learned:
        """Return a policy improved by reinforcement learning in simulated clusters.

        The result has the best network of the training on separate traces, which may be that of this policy.
        The speeds of the workload are known during the training; the result learns speeds from a history.

        Parameters
        ----------
        workload : Workload
            The clusters; `onlineauto.cluster.simulate` fits one to a history.
        slots : int
            Number of slots of each simulated cluster.
        settings : Improving, optional
            Settings of the training.
        seed : int
            Seed of traces and actions.
        """
        from onlineauto.cluster.learned.training import improve_policy

        return improve_policy(self, workload, settings or Improving(slots=slots), seed=seed)

    def live(self, settings: Improving | None = None, *, seed: int = 0) -> Learned:
        """Improve the networks after each observed slot from now on, and return this policy.

        Each slot adds its decisions to the replay, whichever policy decided, with the progress of the jobs as
        reward. Then the networks take `Improving.updates` gradient steps on decisions drawn from the replay.

        Parameters
        ----------
        settings : Improving, optional
            Settings of the training; those of simulated clusters have no effect. The default has three times
            the learning rate of a training in 16 clusters.
        seed : int
            Seed of the drawn decisions.
        """
        from onlineauto.cluster.learned.training import Learner

        self._learner = Learner(self, settings or Improving(rate=3e-3), seed=seed)
        return self

    def keep(self, path: str | os.PathLike[str]) -> None:
        """Continue with the networks, optimizers and replay of a file if it exists; write it in each slot."""
        if self._learner is not None:
            if Path(path).exists():
                tree = _read(path)
                self.weights, self.critic = _networks(path, tree)
                self._learner.restore(path, tree)
            self._path = path

    def score(self, situation: Situation) -> Floats:
        """Return the scores of the network."""
        return scores(self.weights, features(situation, self.speeds)).astype(np.float64)

    def see(self, situation: Situation) -> None:
        """Remember the situation, to learn from the decisions of the slot."""
        if self._learner is not None:
            self._learner.situation = situation

    def observe(self, records: Sequence[Record]) -> None:
        """Learn the speeds of jobs; improve the networks if this policy is `live`."""
        if self._learner is not None and self._learner.observe(records) and self._path is not None:
            replace_file(self._path, encode_tree({**self._tree(), **self._learner.tree()}))
        super().observe(records)

    def guarded(self, *, by: ClusterPolicy | None = None) -> Guarded:
        """Return a policy that decides like this one only while it is proved to be faster than another.

        Parameters
        ----------
        by : Policy, optional
            The other policy; by default `Fair`.
        """
        return Guarded(self, by or Fair())

    def _tree(self) -> dict[str, Any]:
        return {"policy": _FORMAT, "weights": self.weights, "critic": self.critic or {}}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the networks to a file, without pickle. An existing file is replaced atomically.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        replace_file(path, encode_tree(self._tree()))

    @classmethod
    def load(cls, path: str | os.PathLike[str] = _COMMITTED) -> Learned:
        """Return the policy of a file; by default that of this package.

        Raises
        ------
        InputError
            If the file cannot be read, is not a policy, or is incomplete.
        """
        return cls(*_networks(path, _read(path)))


def _networks(path: str | os.PathLike[str], tree: Mapping[str, Any]) -> tuple[Weights, Weights | None]:
    critic = read_arrays(path, tree, "critic", shapes(1)) if tree.get("critic") else None
    return read_arrays(path, tree, "weights", shapes(3)), critic
