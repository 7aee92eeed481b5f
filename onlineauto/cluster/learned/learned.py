"""``Learned``: a policy that first imitates a teacher and is then improved in a simulator."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.learned.features import features
from onlineauto.cluster.learned.guard import Guarded
from onlineauto.cluster.learned.net import Net, draw_weights
from onlineauto.cluster.learned.saved import read_policy, write_policy
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import ClusterPolicy

if TYPE_CHECKING:
    import os

    from onlineauto.cluster.learned.net import Weights
    from onlineauto.cluster.learned.settings import Improving, WarmUp
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.simulator.workload import Workload

_COMMITTED = Path(__file__).with_name("mixed.npz")


class Learned(ClusterPolicy):
    """Score actions by a small network: DL2, adapted to one machine.

    The network reads each job separately and the mean of all jobs, so any number of jobs is possible. It
    needs no formula of speeds, because it was trained on jobs of these kinds. Decisions need only NumPy;
    training needs PyTorch, the extra ``learned``.

    Source: Peng et al., *DL2: A deep learning-driven scheduler for deep learning clusters*, TPDS 2021.
    docs/concepts/cluster.md lists the differences and the measured effect.

    Parameters
    ----------
    kinds : tuple of str
        Names of the known kinds of jobs.
    scales : float64[kinds + 1]
        Number of slots of a unit of work with one bundle, for each kind; the last entry is for other kinds.
    weights : Weights
        Weights of the network.

    Examples
    --------
    >>> from onlineauto.cluster import Row, Situation, allocate
    >>> policy = Learned.untrained(("study",))
    >>> job = Row(kind="study", age=0, done=0, remaining=5, worker={"CPU": 1}, server={})
    >>> int(allocate(policy, Situation.of([job], {"CPU": 4})).workers[0, 0]) >= 1
    True
    """

    name: ClassVar[str] = "learned"

    def __init__(self, kinds: tuple[str, ...], scales: Floats, weights: Weights) -> None:
        self.kinds, self.scales = kinds, scales
        self.net = Net(weights)

    def __repr__(self) -> str:
        """Return the number of known kinds of jobs as text."""
        return f"Learned of {len(self.kinds)} kinds"

    @classmethod
    def untrained(cls, kinds: tuple[str, ...], scales: Floats | None = None, *, seed: int = 0) -> Learned:
        """Return a policy with random weights."""
        if scales is None:
            scales = np.ones(len(kinds) + 1)
        return cls(kinds, scales, draw_weights(np.random.default_rng([0xD12, seed]), len(kinds), 3))

    @classmethod
    def warm_up(
        cls,
        workload: Workload,
        *,
        teacher: ClusterPolicy | None = None,
        settings: WarmUp | None = None,
        seed: int = 0,
    ) -> Learned:
        """Return a policy that imitates the decisions of a teacher.

        The policy is trained by cross entropy on decisions of the teacher in simulated clusters. Decisions
        are smoothed over all choices. A policy with a teacher that always allocates everything can therefore
        learn later that leaving resources free may be better.

        Parameters
        ----------
        workload : Workload
            The clusters; `onlineauto.cluster.simulate` fits one to a history.
        teacher : Policy, optional
            The teacher; by default `Fair`.
        settings : WarmUp, optional
            Settings of the training.
        seed : int
            Seed of traces and weights.

        Raises
        ------
        OptionError
            If PyTorch is missing.
        """
        from onlineauto.cluster.learned.settings import WarmUp
        from onlineauto.cluster.learned.warming import imitate

        return imitate(workload, teacher or Fair(), settings or WarmUp(), seed=seed)

    def improve(
        self, workload: Workload, *, slots: int = 800, settings: Improving | None = None, seed: int = 0
    ) -> Learned:
        """Return a policy improved by reinforcement learning in simulated clusters.

        The result is the best policy of the training on separate traces, which may be this policy.

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

        Raises
        ------
        OptionError
            If PyTorch is missing.
        """
        from onlineauto.cluster.learned.improving import improve_policy
        from onlineauto.cluster.learned.settings import Improving

        return improve_policy(self, workload, settings or Improving(slots=slots), seed=seed)

    def score(self, situation: Situation) -> Floats:
        """Return the scores of the network."""
        return self.net.scores(features(situation, self.kinds, self.scales))

    def guarded(self, *, by: ClusterPolicy | None = None) -> Guarded:
        """Return a policy that decides like this one only while it is proved to be faster than another.

        Parameters
        ----------
        by : Policy, optional
            The other policy; by default `Fair`.
        """
        return Guarded(self, by or Fair())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to an ``.npz`` file without pickle.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_policy(path, self.kinds, self.scales, self.net.weights)

    @classmethod
    def load(cls, path: str | os.PathLike[str] = _COMMITTED) -> Learned:
        """Return the policy of a file; by default that of this package, trained on the simulator's workload.

        A policy knows the kinds of jobs of its training. For a cluster with other kinds, train a policy on
        the workload that `simulate` fits to its history, and use its `guarded` form.

        Raises
        ------
        InputError
            If the file is not a policy, or is incomplete.
        OSError
            If the file cannot be read.
        """
        return cls(*read_policy(path))
