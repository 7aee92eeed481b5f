"""``Learned``: a policy that imitates a teacher first and is improved in a simulator then."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from onlineauto.cluster.learned.features import features
from onlineauto.cluster.learned.guard import Guarded
from onlineauto.cluster.learned.net import Net, draw_weights
from onlineauto.cluster.learned.saved import read_saved, write_saved
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import Policy

if TYPE_CHECKING:
    import os

    from onlineauto.cluster.learned.net import Weights
    from onlineauto.cluster.learned.settings import Improving, WarmUp
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.simulator.workload import Workload

_COMMITTED = Path(__file__).with_name("mixed.npz")


class Learned(Policy):
    """Score actions by a small network: DL2, with what it takes to work on one machine.

    The network reads each job by itself and the mean of all, so any number of jobs will do. It needs no
    formula of speeds: it was trained on jobs of these kinds. It decides in NumPy; only training needs
    PyTorch, the extra ``learned``.

    Source: Peng et al., *DL2: A deep learning-driven scheduler for deep learning clusters*, TPDS 2021.
    docs/concepts/cluster.md says what is different here, and what it is worth.

    Parameters
    ----------
    kinds : tuple of str
        Names of the kinds of jobs that it knows.
    scales : float64[kinds + 1]
        Slots that a unit of work of each kind takes with one bundle; the last one is of all other kinds.
    weights : Weights
        Of the network.

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
        """Show how many kinds of jobs it knows."""
        return f"Learned of {len(self.kinds)} kinds"

    @classmethod
    def untrained(cls, kinds: tuple[str, ...], scales: Floats | None = None, *, seed: int = 0) -> Learned:
        """Return a policy that knows nothing."""
        if scales is None:
            scales = np.ones(len(kinds) + 1)
        return cls(kinds, scales, draw_weights(np.random.default_rng([0xD12, seed]), len(kinds), 3))

    @classmethod
    def warm_up(
        cls,
        workload: Workload,
        *,
        teacher: Policy | None = None,
        settings: WarmUp | None = None,
        seed: int = 0,
    ) -> Learned:
        """Return a policy that decides about as its teacher does.

        It learns from the teacher's decisions in simulated clusters, by cross entropy. A teacher that gives
        away everything never ends a slot; with its decisions smoothed over all choices, the policy does at
        times, and so can find out that it pays.

        Parameters
        ----------
        workload : Workload
            The clusters; `onlineauto.cluster.simulate` fits one to a history.
        teacher : Policy, optional
            By default `Fair`.
        settings : WarmUp, optional
            How it is done.
        seed : int
            Of traces and weights.

        Raises
        ------
        OptionError
            If PyTorch is missing.
        """
        from onlineauto.cluster.learned.settings import WarmUp
        from onlineauto.cluster.learned.warming import warmed_up

        return warmed_up(workload, teacher or Fair(), settings or WarmUp(), seed=seed)

    def improve(
        self, workload: Workload, *, slots: int = 800, settings: Improving | None = None, seed: int = 0
    ) -> Learned:
        """Return a better policy, by reinforcement learning in simulated clusters.

        The best one on traces of its own is returned, which may be this one.

        Parameters
        ----------
        workload : Workload
            The clusters; `onlineauto.cluster.simulate` fits one to a history.
        slots : int
            Slots that each of the simulated clusters works for.
        settings : Improving, optional
            How it is done.
        seed : int
            Of traces and actions.

        Raises
        ------
        OptionError
            If PyTorch is missing.
        """
        from onlineauto.cluster.learned.improving import improved
        from onlineauto.cluster.learned.settings import Improving

        return improved(self, workload, settings or Improving(slots=slots), seed=seed)

    def score(self, situation: Situation) -> Floats:
        """Return what the network says."""
        return self.net.scores(features(situation, self.kinds, self.scales))

    def guarded(self, *, by: Policy | None = None) -> Guarded:
        """Return a policy that does as this one does only where it is proved better than another one.

        Parameters
        ----------
        by : Policy, optional
            By default `Fair`.
        """
        return Guarded(self, by or Fair())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy into an ``.npz`` file, without pickle.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        write_saved(path, self.kinds, self.scales, self.net.weights)

    @classmethod
    def load(cls, path: str | os.PathLike[str] = _COMMITTED) -> Learned:
        """Read a policy; by default the one of this package, trained on the simulator's own workload.

        It knows the kinds of jobs that it was trained on. For a cluster with others, train one on the
        workload that is fitted to its history, and let it be `guarded`.

        Raises
        ------
        InputError
            If the file is not a policy, or not a whole one.
        OSError
            If the file cannot be read.
        """
        return cls(*read_saved(path))
