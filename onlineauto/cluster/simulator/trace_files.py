"""Read public traces of clusters of GPUs, with the speeds of their jobs: Sia, Gavel and Alibaba.

The files belong to their authors and are not part of this package. docs/guides/cluster.md has the commands
that fetch them.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from onlineauto.cluster.policies.gpu_policy import GpuApplication, GpuCluster, GpuJob, scipy_module
from onlineauto.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from onlineauto.cluster.policies.gpu_policy import Placement
    from onlineauto.cluster.policies.situation import Floats

SIA_CLUSTER: Final = GpuCluster({"aws": (6, 4), "dgx-ext": (2, 8), "rtx": (3, 8)})
"""The cluster of the experiments of Sia: 64 GPUs of three kinds."""
GAVEL_CLUSTER: Final = GpuCluster({"k80": (9, 4), "p100": (9, 4), "v100": (9, 4)})
"""The simulated cluster of Gavel: 36 GPUs of each of three kinds, here on nodes of four."""
_SIA_COSTS: Final = {
    "cifar10": (50.0, 1.8),
    "deepspeech2": (25.0, 1.2),
    "bert": (120.0, 1.2),
    "yolov3": (80.0, 1.2),
    "imagenet": (250.0, 1.2),
    "ncf": (15.0, 1.5),
}
"""Seconds of a restart, and the ratio of real to profiled step times, which Sia's authors measured."""
_RESTART: Final = 30.0
"""Seconds of a restart of other applications."""

_CANDIDATES: Final = 50
"""Number of batch sizes, in geometric progression, among which an adaptive job chooses."""
_ROUNDING: Final = 1e-8
"""Absolute error of a quotient of batch sizes before it is rounded up."""


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
        points = np.stack(
            [np.full_like(per_gpu, len(placement)), np.full_like(per_gpu, sum(placement)), per_gpu]
        )
        times = interpolator(points.T)
        return times[:, 0], times[:, 1]

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
    return min(placement[offset:] + placement[:offset] for offset in range(len(placement)))


def read_trace(
    workload: str | os.PathLike[str], traces: str | os.PathLike[str]
) -> tuple[list[GpuJob], GpuCluster]:
    """Return the jobs of a public trace, and the cluster of its authors.

    Parameters
    ----------
    workload : path
        A workload of Sia (``name,time,application,num_replicas,batch_size``), a trace of Gavel
        (``*.trace``), or a list of pods of Alibaba (``openb_pod_list_*.csv``).
    traces : path
        For Sia, the folder with a folder of measurements for each application. For Gavel, the file
        ``simulation_throughputs.json``. For Alibaba, the file ``openb_node_list_*.csv``.

    Raises
    ------
    InputError
        A file does not have the form of any of these traces.
    OSError
        A file cannot be read.
    """
    path = Path(workload)
    if path.suffix == ".trace":
        return read_gavel(path, traces), GAVEL_CLUSTER
    first = next(_rows(path), {})
    if {"name", "time", "application", "num_replicas", "batch_size"} <= first.keys():
        return read_sia(path, traces), SIA_CLUSTER
    if {"name", "num_gpu", "gpu_spec", "creation_time", "scheduled_time", "deletion_time"} <= first.keys():
        return read_alibaba(path, traces), read_alibaba_cluster(traces)
    raise InputError(
        f"{path}: neither a workload of Sia, nor a trace of Gavel, nor a list of pods of Alibaba; its "
        f"columns are {', '.join(first) or 'missing'}"
    )


def read_sia(workload: str | os.PathLike[str], traces: str | os.PathLike[str]) -> list[GpuJob]:
    """Return the jobs of a workload of Sia, with the measurements of their applications."""
    applications: dict[str, GpuApplication] = {}
    jobs = []
    for row in _rows(Path(workload)):
        name = row["application"]
        if name not in applications:
            applications[name] = read_sia_application(Path(traces) / name)
        jobs.append(
            GpuJob(
                name=row["name"],
                application=applications[name],
                arrival=_number(row, "time", workload),
                asked=int(_number(row, "num_replicas", workload)),
                batch=int(_number(row, "batch_size", workload)),
            )
        )
    return jobs


def read_sia_application(folder: Path) -> MeasuredApplication:
    """Return the application of a folder with the files ``placements-*.csv``, ``scalability-*.csv`` and
    ``validation-*.csv``.
    """  # noqa: D205
    tables = {}
    for path in sorted(folder.glob("placements-*.csv")):
        kind = path.stem.removeprefix("placements-")
        tables[kind] = _step_times(path, folder / f"scalability-{kind}.csv", (folder.name, kind))
    runs = {
        int(path.stem.removeprefix("validation-")): _columns(path, "grad_sqr", "grad_var", "progress")
        for path in folder.glob("validation-*.csv")
        if path.stem.removeprefix("validation-").isdecimal()
    }
    if not tables or not runs:
        raise InputError(f"{folder}: there are no files placements-KIND.csv and validation-BATCH.csv")
    batches = sorted(runs)
    epochs = min(len(runs[batch]["progress"]) for batch in batches)
    squares, variances, progress = (
        np.stack([runs[batch][column][:epochs] for batch in batches])
        for column in ("grad_sqr", "grad_var", "progress")
    )
    restart, slowdown = _SIA_COSTS.get(folder.name, (_RESTART, 1.0))
    return MeasuredApplication(
        folder.name,
        tables,
        batches=batches,
        progress=np.concatenate([[0.0], progress.min(0)]),
        squares=squares,
        variances=variances,
        restart=restart,
        slowdown=slowdown,
    )


def read_gavel(trace: str | os.PathLike[str], throughputs: str | os.PathLike[str]) -> list[GpuJob]:
    """Return the jobs of a trace of Gavel; a job runs only on the number of GPUs that it asks for."""
    try:
        known = msgspec.json.decode(Path(throughputs).read_bytes(), type=dict[str, dict[str, dict[str, Any]]])
    except msgspec.DecodeError as error:
        raise InputError(f"{throughputs}: these are no throughputs of Gavel: {error}") from None
    try:
        lines = Path(trace).read_text("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{trace}: the file is not UTF-8: {error}") from None
    jobs = []
    for number, line in enumerate(lines):
        fields = line.split("\t")
        if len(fields) < 7:
            raise InputError(
                f"{trace}:{number + 1}: {len(fields)} fields; a job of Gavel has 7 or more, between tabs"
            )
        # Traces of Philly end with steps, arrival and GPUs; later traces have steps, GPUs, …, arrival.
        ends = (4, 5, 6) if len(fields) == 7 else (5, -1, 6)
        row = {
            name: fields[position] for name, position in zip(("steps", "arrival", "GPUs"), ends, strict=True)
        }
        steps, arrival, gpus = (_number(row, name, f"{trace}:{number + 1}") for name in row)
        asked = int(gpus)
        # An application without measurements on several GPUs is as fast on several as on one.
        keys = (f"('{fields[0]}', {asked})", f"('{fields[0]}', 1)")
        speeds = {
            kind: next((table[key].get("null", 0.0) for key in keys if key in table), 0.0)
            for kind, table in known.items()
        }
        rates = {kind: {asked: float(speed)} for kind, speed in speeds.items() if speed > 0}
        if not rates:
            raise InputError(f"{trace}:{number + 1}: {throughputs} has no throughput of {fields[0]}")
        # Jobs of one application have the same speeds, and these depend on the number of GPUs.
        application = TimedApplication(f"{fields[0]} on {asked}", steps, rates, _RESTART)
        jobs.append(GpuJob(name=f"{number}", application=application, arrival=arrival, asked=asked))
    return jobs


def read_alibaba(pods: str | os.PathLike[str], nodes: str | os.PathLike[str]) -> list[GpuJob]:
    """Return the pods of a trace of Alibaba that have whole GPUs and have ended.

    The duration of a pod is the same on all kinds of GPU that it accepts, because the trace does not have
    any speeds. Pods with a part of a GPU are rounded up to one GPU.
    """
    kinds = {row["model"] for row in _rows(Path(nodes)) if row.get("model")}
    jobs = []
    for row in _rows(Path(pods)):
        asked = int(_number(row, "num_gpu", pods))
        if not asked or not row["deletion_time"] or not row["scheduled_time"]:
            continue
        seconds = _number(row, "deletion_time", pods) - _number(row, "scheduled_time", pods)
        accepted = {*row["gpu_spec"].split("|")} & kinds or kinds
        rates = {kind: {asked: 1.0} for kind in sorted(accepted)}
        application = TimedApplication(row["gpu_spec"] or "any", max(seconds, 1.0), rates, _RESTART)
        arrival = _number(row, "creation_time", pods)
        jobs.append(GpuJob(name=row["name"], application=application, arrival=arrival, asked=asked))
    return jobs


def read_alibaba_cluster(nodes: str | os.PathLike[str]) -> GpuCluster:
    """Return the cluster of a list of nodes of Alibaba; a kind has the node size of its largest node."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for row in _rows(Path(nodes)):
        if row.get("model") and (gpus := int(_number(row, "gpu", nodes))) > 0:
            sizes[row["model"]].append(gpus)
    if not sizes:
        raise InputError(f"{nodes}: no node has a model and GPUs; is this Alibaba's list of nodes?")
    return GpuCluster({kind: (sum(gpus) // max(gpus), max(gpus)) for kind, gpus in sorted(sizes.items())})


def _step_times(placements: Path, scalability: Path, name: tuple[str, str]) -> StepTimes:
    measured: dict[Placement, list[tuple[float, ...]]] = defaultdict(list)
    table = _columns(placements, "placement", "local_bsz", "step_time", "sync_time")
    times = np.stack([table[column] for column in ("local_bsz", "step_time", "sync_time")], 1)
    for placement, row in zip(table["placement"], times, strict=True):
        measured[tuple(map(int, f"{placement:.0f}"))].append(tuple(row))
    others = np.zeros((0, 5))
    if scalability.exists():
        names = ("num_nodes", "num_replicas", "local_bsz", "step_time", "sync_time")
        more = _columns(scalability, *names)
        others = np.stack([more[column] for column in names], 1)
    most = int(table["local_bsz"].max())
    return StepTimes(
        placements={placement: np.array(sorted(rows)) for placement, rows in measured.items()},
        others=others,
        least=int(table["local_bsz"].min()),
        # This one does not fit into the memory of the GPU beyond 57 examples.
        most=57 if name == ("deepspeech2", "rtx") else most,
    )


def _rows(path: Path) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from csv.DictReader(file, restkey="", restval="")
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: the file is not CSV in UTF-8: {error}") from None


def _columns(path: Path, *names: str) -> dict[str, Floats]:
    """Return columns of a CSV file as numbers."""
    rows = [*_rows(path)]
    if not rows:
        raise InputError(f"{path}: the file has no rows")
    return {column: np.array([_number(row, column, path) for row in rows]) for column in names}


def _number(row: dict[str, Any], column: str, path: object) -> float:
    if column not in row:
        raise InputError(f"{path}: there is no column {column}")
    try:
        number = float(row[column])
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{path}: {column} = {row[column]!r} is not a finite number")
    return number
