"""``Learned``: a policy that imitates a teacher, then improves in a simulator; settings of the training."""

from __future__ import annotations

import io
import json
import os
import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from onlineauto.cluster.learned.guard import Guarded
from onlineauto.cluster.learned.net import Net, draw_weights, features, shapes
from onlineauto.cluster.policies.baselines import Fair
from onlineauto.cluster.policies.policy import ClusterPolicy
from onlineauto.errors import InputError

if TYPE_CHECKING:
    from typing import IO

    from onlineauto.cluster.learned.net import Weights
    from onlineauto.cluster.policies.situation import Floats, Situation
    from onlineauto.cluster.simulator.workload import Workload

_COMMITTED = Path(__file__).with_name("mixed.npz")

_FORMAT: Final = 1
_MOST: Final = 1 << 22
"""Maximum size of an array of such a file, which has a small network."""
_MOST_BYTES: Final = 1 << 24
_MOST_KINDS: Final = 1000
_BROKEN: Final = (
    *(ValueError, TypeError, KeyError, EOFError, IndexError, SyntaxError, RuntimeError, MemoryError),
    *(OverflowError, OSError, zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
"""Exceptions that a damaged archive or a damaged array may raise."""


def _read(file: IO[bytes]) -> tuple[tuple[str, ...], Floats, Weights]:
    """Return the names of kinds, their scales and the weights of a policy."""
    with zipfile.ZipFile(file) as archive:
        # The directory has the size of each array before it is decompressed.
        sizes = {member.filename: member.file_size for member in archive.infolist()}
    large = [name for name, size in sizes.items() if size > _MOST]
    if large:
        raise ValueError(f"{large[0]} is too large")
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        about = json.loads(_array(arrays, "about", np.uint8).tobytes())
        if not isinstance(about, dict) or about.get("format") != _FORMAT:
            raise ValueError("its format is unknown")
        kinds = about.get("kinds")
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            raise ValueError("its list of kinds of jobs is missing or damaged")
        if len(kinds) > _MOST_KINDS or len({*kinds}) < len(kinds):
            raise ValueError("a kind of jobs is repeated, or there are too many kinds")
        scales = _array(arrays, "scales", np.float32, (len(kinds) + 1,))
        width = _array(arrays, "bias", np.float32).size
        weights = {
            name: _array(arrays, name, np.float32, shape)
            for name, shape in shapes(len(kinds), 3, width).items()
        }
    if scales.min() <= 0:
        raise ValueError("a scale is not above 0")
    return tuple(kinds), scales, weights


def _array(arrays: Any, name: str, kind: type, shape: tuple[int, ...] | None = None) -> Any:
    """Return an array after a check of its type, its shape and its numbers, which must be finite."""
    array = arrays[name]
    if array.dtype != kind or (shape is not None and array.shape != shape) or array.size > _MOST:
        raise ValueError(f"{name} is {array.dtype}{list(array.shape)}")
    if kind is np.uint8:
        return array
    if not np.isfinite(array).all():
        raise ValueError(f"{name} has a number that is not finite")
    return array.astype(np.float64)


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
        from onlineauto.cluster.learned.training import imitate

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
        from onlineauto.cluster.learned.training import improve_policy

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
        about = json.dumps({"format": _FORMAT, "kinds": list(self.kinds)}).encode()
        arrays: dict[str, Any] = {"scales": self.scales, **self.net.weights}
        arrays = {name: array.astype(np.float32) for name, array in arrays.items()}
        with Path(path).open("wb") as file:
            np.savez_compressed(file, about=np.frombuffer(about, np.uint8), **arrays)

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
        with Path(path).open("rb") as file:
            text = file.read(_MOST_BYTES + 1)
        try:
            if len(text) > _MOST_BYTES:
                raise ValueError("it is too large")
            policy = _read(io.BytesIO(text))
        except _BROKEN as error:
            raise InputError(f"{os.fspath(path)}: not a policy that Learned.save wrote: {error}") from error
        return cls(*policy)
