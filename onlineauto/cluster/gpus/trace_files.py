"""Read public traces of clusters of GPUs: those of Sia, of Gavel, and of Alibaba.

The files belong to their authors and are not part of this package. docs/guides/cluster.md has the commands
that fetch them.
"""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from onlineauto.cluster.gpus.application import MeasuredApplication, StepTimes, TimedApplication
from onlineauto.cluster.gpus.cluster import GpuCluster, GpuJob
from onlineauto.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from onlineauto.cluster.gpus.application import GpuApplication, Placement
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
        row = {name: fields[at] for name, at in zip(("steps", "arrival", "GPUs"), ends, strict=True)}
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
    return GpuCluster({kind: (sum(each) // max(each), max(each)) for kind, each in sorted(sizes.items())})


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
