"""``GpuApplication``: the speed of a training job by kind of GPU, placement and batch size."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from onlineauto.errors import PackageError, install_hint

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from onlineauto.cluster.policies.situation import Floats

Placement = tuple[int, ...]
"""GPUs of a job on each of its nodes."""

_CANDIDATES: Final = 50
"""Number of batch sizes, in geometric progression, among which an adaptive job chooses."""
_ROUNDING: Final = 1e-8
"""Absolute error of a quotient of batch sizes before it is rounded up."""


def scipy_module(name: str) -> Any:
    """Return a module of SciPy."""
    try:
        return import_module(f"scipy.{name}")
    except ImportError as error:
        raise PackageError(f"clusters of GPUs need SciPy: {install_hint('tune')}") from error


class GpuApplication(ABC):
    """A program that jobs run on GPUs. Its work is divided into epochs, in which its speed is constant.

    Attributes
    ----------
    name : str
        Jobs of one application have the same speeds.
    progress : float64[E + 1]
        The work that is done at the beginning of each epoch, and at the end.
    restart : float
        Seconds that a job loses when its GPUs change.
    is_elastic : bool
        False if a job runs only on the number of GPUs that it asks for.
    """

    name: str
    progress: Floats
    restart: float
    is_elastic: bool

    @abstractmethod
    def rates(self, kind: str, placement: Placement, batch: int | None = None) -> Floats:
        """Return the work per second in each epoch: float64[E]; 0 if the placement is impossible.

        Parameters
        ----------
        kind : str
            The kind of the GPUs.
        placement : tuple of int
            GPUs on each node.
        batch : int, optional
            A fixed batch size; by default the batch size with the highest goodput in each epoch.
        """

    @abstractmethod
    def steps(self, kind: str, placement: Placement, batch: int | None = None) -> float:
        """Return the training steps per second with a fixed batch size; 0 if the placement is impossible."""

    @abstractmethod
    def most(self, kind: str) -> int:
        """Return the maximum number of GPUs of a kind; 0 if the application does not run on this kind."""


class TimedApplication(GpuApplication):
    """An application with one known rate for each kind of GPU and number of GPUs.

    Parameters
    ----------
    name : str
        Name of the application.
    work : float
        Units of work of a job.
    rates : mapping
        Units of work per second, by kind and by number of GPUs.
    restart : float
        Seconds that a job loses when its GPUs change.
    """

    is_elastic = False

    def __init__(
        self, name: str, work: float, rates: Mapping[str, Mapping[int, float]], restart: float
    ) -> None:
        self.name, self.restart = name, restart
        self.progress = np.array([0.0, work])
        self._rates = rates

    def rates(self, kind: str, placement: Placement, batch: int | None = None) -> Floats:  # noqa: ARG002
        """Return the rate for the number of GPUs; the number of nodes has no effect."""
        return np.array([self._rates.get(kind, {}).get(sum(placement), 0.0)])

    def steps(self, kind: str, placement: Placement, batch: int | None = None) -> float:  # noqa: ARG002
        """Return the rate for the number of GPUs."""
        return float(self.rates(kind, placement)[0])

    def most(self, kind: str) -> int:
        """Return the maximum number of GPUs with a rate."""
        return max(self._rates.get(kind, {}), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimes:
    """Measured times of a training step of one application on one kind of GPU."""

    # For each placement float64[n, 3]: batch size per GPU, step time, and the part of it that synchronizes;
    # sorted by batch size.
    placements: Mapping[Placement, Floats]
    # float64[m, 5]: number of nodes, number of GPUs and the same three columns, for placements that are not
    # in `placements`.
    others: Floats
    least: int  # Limits of the batch size per GPU.
    most: int

    def most_per_gpu(self, placement: Placement) -> int:
        """Return the maximum batch size per GPU in a placement."""
        table = self.placements.get(_canonical(placement))
        if table is not None:
            return int(table[-1, 0])
        enough = (self.others[:, 0] >= len(placement)) & (self.others[:, 1] >= sum(placement))
        return int(self.others[enough, 2].max(initial=self.least))

    def times(self, placement: Placement, per_gpu: Floats) -> tuple[Floats, Floats]:
        """Return step times and their synchronizing parts for batch sizes per GPU; NaN if unknown."""
        table = self.placements.get(_canonical(placement))
        if table is not None:
            known = (per_gpu >= table[0, 0]) & (per_gpu <= table[-1, 0])
            step, sync = (np.interp(per_gpu, table[:, 0], table[:, column]) for column in (1, 2))
            return np.where(known, step, np.nan), np.where(known, sync, np.nan)
        try:
            interpolator: Any = scipy_module("interpolate").LinearNDInterpolator(*self._points())
        except scipy_module("spatial").QhullError:  # too few measurements to interpolate between
            return np.full_like(per_gpu, np.nan), np.full_like(per_gpu, np.nan)
        at = np.stack([np.full_like(per_gpu, len(placement)), np.full_like(per_gpu, sum(placement)), per_gpu])
        found = interpolator(at.T)
        return found[:, 0], found[:, 1]

    def _points(self) -> tuple[Floats, Floats]:
        """Return all measurements: their nodes, GPUs and batch sizes, and their mean times."""
        rows = [
            (len(placement), sum(placement), *row)
            for placement, table in self.placements.items()
            for row in table
        ]
        inputs, number = np.unique(np.array(rows)[:, :3], axis=0, return_inverse=True)
        number = number.reshape(-1)
        counts = np.bincount(number)[:, None]
        sums = np.stack([np.bincount(number, np.array(rows)[:, column]) for column in (3, 4)], 1)
        return np.concatenate([inputs, self.others[:, :3]]), np.concatenate(
            [sums / counts, self.others[:, 3:]]
        )


class MeasuredApplication(GpuApplication):
    """Training by stochastic gradient descent, whose goodput is known for each batch size.

    Goodput = throughput × statistical efficiency. With batch size M, first batch size M0, gradient variance v
    and squared gradient norm s (their ratio is the gradient noise scale), a step makes as much progress as
    (v + s) / (v M0 / M + s) steps with M0. Work is therefore counted in steps with M0.

    Source: Qiao et al., *Pollux: Co-adaptive cluster scheduling for goodput-optimized deep learning*, OSDI
    2021.

    Parameters
    ----------
    name : str
        Name of the application.
    tables : mapping
        `StepTimes` by kind of GPU.
    batches : int64[B]
        Batch sizes with measured gradients, ascending; the first is M0.
    progress : float64[E + 1]
        The work at the beginning of each epoch, and at the end.
    squares, variances : float64[B, E]
        Squared norm and variance of the gradient.
    restart : float
        Seconds that a job loses when its GPUs change.
    slowdown : float
        Factor of all step times.
    """

    is_elastic = True

    def __init__(
        self,
        name: str,
        tables: Mapping[str, StepTimes],
        *,
        batches: Sequence[int],
        progress: Floats,
        squares: Floats,
        variances: Floats,
        restart: float,
        slowdown: float = 1.0,
    ) -> None:
        self.name, self.progress, self.restart, self.slowdown = name, progress, restart, slowdown
        self.batches = np.array(batches, np.float64)
        self._tables, self._squares, self._variances = tables, squares, variances
        self._known: dict[tuple[str, Placement, int | None], Floats] = {}

    def rates(self, kind: str, placement: Placement, batch: int | None = None) -> Floats:
        """Return the goodput in each epoch."""
        key = (kind, _canonical(placement), batch)
        if key not in self._known:
            if kind not in self._tables:
                self._known[key] = np.zeros(len(self.progress) - 1)
            elif batch is None:
                self._known[key] = self._best(self._tables[kind], placement)
            else:
                table = self._tables[kind]
                self._known[key] = self._goodput(table, placement, *self._fixed(table, placement, batch))[
                    :, 0
                ]
        return self._known[key]

    def steps(self, kind: str, placement: Placement, batch: int | None = None) -> float:
        """Return the training steps per second with a batch size, by default the first one."""
        if kind not in self._tables:
            return 0.0
        table, size = self._tables[kind], int(self.batches[0]) if batch is None else batch
        return float(np.nan_to_num(1 / self._time(table, placement, *self._fixed(table, placement, size)))[0])

    def most(self, kind: str) -> int:
        """Return the number of GPUs at which each has the least batch size."""
        return int(self.batches[-1] // self._tables[kind].least) if kind in self._tables else 0

    def gain(self, batch: Floats) -> Floats:
        """Return the progress of a step with a batch size in steps with the first one: float64[E, n]."""
        inside = np.clip(batch, self.batches[0], self.batches[-1])
        squares, variances = (
            np.stack([np.interp(inside, self.batches, column) for column in table.T])
            for table in (self._squares, self._variances)
        )
        return np.asarray((variances + squares) / (variances * self.batches[0] / batch + squares))

    def _best(self, table: StepTimes, placement: Placement) -> Floats:
        """Return the highest goodput in each epoch."""
        gpus, most = sum(placement), table.most_per_gpu(placement)
        least = max(self.batches[0], table.least * gpus)
        if least > self.batches[-1]:
            return np.zeros(len(self.progress) - 1)
        local = np.geomspace(least, self.batches[-1], _CANDIDATES) / gpus
        steps = np.ceil(local / most - _ROUNDING)
        if gpus == 1:  # one small batch alone does not show the variance of gradients
            steps = np.where(local > self.batches[0] + _ROUNDING, np.maximum(steps, 2), steps)
        per_gpu = np.ceil(local / steps - _ROUNDING)
        goodput = self._goodput(table, placement, per_gpu, steps)
        return np.asarray(np.where((table.least <= per_gpu) & (per_gpu <= most), goodput, 0.0).max(1))

    def _fixed(self, table: StepTimes, placement: Placement, batch: int) -> tuple[Floats, Floats]:
        """Return the batch size per GPU and the number of gradients of a step, for a fixed batch size."""
        gpus, most = sum(placement), table.most_per_gpu(placement)
        local = math.ceil(batch / gpus - _ROUNDING)
        steps = math.ceil(local / most - _ROUNDING)
        if gpus == 1 and batch > self.batches[0]:
            steps = max(2, steps)
        per_gpu = min(math.ceil(local / steps - _ROUNDING), int(self.batches[-1] / (gpus * steps)))
        return np.array([float(per_gpu)]), np.array([float(steps)])

    def _time(self, table: StepTimes, placement: Placement, per_gpu: Floats, steps: Floats) -> Floats:
        """Return the time of a step with `steps` gradients of `per_gpu` examples each; NaN if unknown."""
        step, sync = table.times(placement, per_gpu)
        return self.slowdown * (step + (steps - 1) * (step - sync))

    def _goodput(self, table: StepTimes, placement: Placement, per_gpu: Floats, steps: Floats) -> Floats:
        """Return the goodput with `steps` gradients of `per_gpu` examples on each GPU: float64[E, n]."""
        gain = self.gain(sum(placement) * per_gpu * steps)
        return np.nan_to_num(gain / self._time(table, placement, per_gpu, steps), nan=0.0)


def _canonical(placement: Placement) -> Placement:
    """Return the smallest rotation of a placement."""
    return min(placement[at:] + placement[:at] for at in range(len(placement)))
