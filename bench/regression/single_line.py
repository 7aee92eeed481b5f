"""Single lines: progressive squared error and speed beside FLAML's AutoVW, on five regression sets.

    python -m bench.regression.single_line [--data DIR] [--seeds 5]
        [--peer-python PYTHON] [--peer-seeds 5] [--json FILE]

Each set gives its first 8,000 lines. A prediction is clipped to the range of the labels so far, the current
one included. Seed 0 is the stream as it is; every other seed is a random order of the same lines, for us
alone, since nothing else is left to chance here. AutoVW (5 live models) has a seed of its own, and is run on
the stream as it is. The speed is lines a second of CPU, the kernels warm, the median of five runs of ours;
AutoVW's imports are not counted.
``--peer-python`` is an interpreter that has flaml 2.7.0, scikit-learn, pandas and vowpalwabbit 9.11.9.
``reg-synth`` and ``reg-births`` are not part of the repository; ``--data`` is the directory that has them.
``--table-python`` is one that has LightGBM, refitted every 2,000 lines, and river.
"stack", "mix" and "champion" are ``--automl 4`` with each ``--predict_with``; the stack is the default.
"""

from __future__ import annotations

import argparse
import gzip
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench import kit
from bench.peer_process import PeerError, ask
from onlineauto import Workspace

SETS = ("synth", "bikeshare", "births", "diamonds", "flights")
"""Names of the sets, without ``reg-``."""

OURS: dict[str, dict[str, Any]] = {
    "plain": {},
    "-q ::": {"quadratic": "::"},
    "stack": {"automl": 4},
    "mix": {"automl": 4, "predict_with": "mix"},
    "champion": {"automl": 4, "predict_with": "champion"},
}
"""Options of our contenders."""

_DATASETS = Path(__file__).resolve().parents[2] / "datasets"
_LINES = 8000

_TIMES = 300
_WIDTH = 24

PEERS = {"AutoVW NI": False, "AutoVW NI+LR": True}
"""What AutoVW searches: interactions, and whether learning rates as well."""
TABLE_PEERS = ("LightGBM", "river linear", "river tree", "river forest")
"""Peers that take columns of names and numbers."""
_TABLE_WORKER = Path(__file__).with_name("table_worker.py")
_WORKER = Path(__file__).with_name("peer_worker.py")


class Peer:
    """AutoVW in the environment of an interpreter."""

    def __init__(self, python: str) -> None:
        self._python = python
        self.versions: dict[str, str] = ask(python, _WORKER)["versions"]

    def run(self, path: Path, contender: str, *, seed: int) -> tuple[list[float], float]:
        """Predict and learn each line of a file; the predictions, and the seconds of CPU that it took.

        Raises
        ------
        PeerError
            The run failed.
        """
        options = {"learning_rate": PEERS[contender], "seed": seed}
        answer = ask(self._python, _WORKER, file=str(path), **options)
        return answer["predictions"], answer["seconds"]


class TablePeer:
    """LightGBM and river in the environment of an interpreter."""

    def __init__(self, python: str) -> None:
        self._python = python
        self.versions: dict[str, str] = ask(python, _TABLE_WORKER)["versions"]

    def run(self, path: Path, contender: str) -> tuple[list[float], float]:
        """Predict and learn each line of a file; the predictions, and the seconds of CPU that it took.

        Raises
        ------
        PeerError
            The run failed.
        """
        answer = ask(self._python, _TABLE_WORKER, file=str(path), who=contender)
        return answer["predictions"], answer["seconds"]


@dataclass(frozen=True, slots=True)
class Run:
    """A contender on a stream: squared error, seconds of CPU, changes of champion (ours only)."""

    name: str
    contender: str
    seed: int
    lines: int
    error: float
    seconds: float
    changes: int | None = None

    @property
    def speed(self) -> float:
        """Lines a second of CPU."""
        return self.lines / self.seconds


Table = dict[str, dict[str, list[Run]]]
"""Runs by set and by contender, seed 0 first."""


def _table(runs: Sequence[Run]) -> Table:
    table: Table = defaultdict(lambda: defaultdict(list))
    for run in runs:
        table[run.name][run.contender].append(run)
    return table


def _is_peer(contender: str) -> bool:
    return contender.startswith("AutoVW")


def _error(runs: Sequence[Run]) -> float:
    """The error on the stream as it is: ours, or the median over AutoVW's own seeds."""
    return median(run.error for run in runs) if _is_peer(runs[0].contender) else runs[0].error


def _ratio(row: dict[str, list[Run]]) -> float:
    """How many times as many lines a second as the faster AutoVW."""
    peers = [median(run.speed for run in runs) for contender, runs in row.items() if _is_peer(contender)]
    return median(run.speed for run in row["stack"]) / max(peers)


def _spread(values: Sequence[float]) -> str:
    """The median and the range, if there are several."""
    if min(values) == max(values):
        return f"{values[0]:.4f}"
    return f"{median(values):.4f} ({min(values):.4f}-{max(values):.4f})"


def _lines(title: str, contenders: Sequence[str], rows: dict[str, list[str]], width: int) -> list[str]:
    head = f"{title:12}" + "".join(f"{contender:>{width}}" for contender in contenders)
    return [
        "",
        head,
        *(f"{name:12}" + "".join(f"{c:>{width}}" for c in cells) for name, cells in rows.items()),
    ]


def printed(runs: Sequence[Run], *, contenders: Sequence[str]) -> str:
    """Make the tables."""
    table = _table(runs)
    ours = [contender for contender in contenders if not _is_peer(contender)]
    peers = len(ours) < len(contenders)
    as_it_is, orders, speeds = {}, {}, {}
    for name, row in table.items():
        as_it_is[name] = [
            _spread([run.error for run in row[c]] if _is_peer(c) else [row[c][0].error]) for c in contenders
        ]
        orders[name] = [_spread([run.error for run in row[c]]) for c in ours]
        speeds[name] = [f"{median(run.speed for run in row[c]):,.0f}" for c in contenders]
        speeds[name] += [f"{_ratio(row):,.0f}"] if peers else []
    several = max(len(row["plain"]) for row in table.values()) if table else 0
    lines = ["squared error, median (range) over seeds; ours on the stream as it is"]
    lines += _lines("", contenders, as_it_is, _WIDTH)
    if several > 1:
        lines += ["", f"ours, on the stream as it is and {several - 1} random orders of it"]
        lines += _lines("", ours, orders, _WIDTH)
    lines += ["", "lines a second of CPU" + "; stack over the faster AutoVW" * peers]
    lines += _lines("", [*contenders, *["ratio"] * peers], speeds, 14)
    return "\n".join([*lines, ""])


def verdicts(runs: Sequence[Run]) -> dict[str, bool]:
    """What is asked, as far as there is anything to compare with, and whether it holds."""
    rows = list(_table(runs).values())
    plain = sum(_error(row["stack"]) < min(_error(row["plain"]), _error(row["-q ::"])) for row in rows)
    asked = {"less error than the better of plain and -q ::, on all sets but one": plain >= len(rows) - 1}
    if all("AutoVW NI+LR" in row for row in rows):
        asked["less error than AutoVW NI+LR, on every set"] = all(
            _error(row["stack"]) < _error(row["AutoVW NI+LR"]) for row in rows
        )
        asked[f"{_TIMES} times as many lines a second as AutoVW, on every set"] = all(
            _ratio(row) >= _TIMES for row in rows
        )
    return asked


@dataclass(frozen=True, slots=True)
class _Stream:
    """A file of lines, and where they come from."""

    name: str
    seed: int
    path: Path


def find(name: str, data: Path | None) -> Path | None:
    """Where a set is: in the repository, or in the directory of others."""
    places = [_DATASETS, *([data] if data else [])]
    return next((path for each in places if (path := each / f"reg-{name}.txt.gz").exists()), None)


def lines_of(path: Path, *, seed: int, lines: int = _LINES) -> list[bytes]:
    """Return the first lines of a set, with their ends; in random order, if the seed is not 0."""
    with gzip.open(path) as file:
        first = [line for line, _ in zip(file, range(lines), strict=False)]
    if seed == 0:
        return first
    return [first[place] for place in np.random.default_rng(seed).permutation(len(first))]


def squared_error(labels: ArrayLike, predictions: ArrayLike) -> float:
    """Mean squared error of predictions that are clipped to the labels so far.

    >>> squared_error([1.0, 3.0], [9.0, 0.0])
    2.0
    """
    known = np.asarray(labels, np.float64)
    low, high = np.minimum.accumulate(known), np.maximum.accumulate(known)
    return float(np.mean((np.clip(np.asarray(predictions, np.float64), low, high) - known) ** 2))


def our_run(stream: _Stream, contender: str) -> Run:
    """Run one of `OURS` six times, and take the median time but for the first, which compiles and loads.

    A run is a few hundredths of a second, and a single one may take twice as long as the next.
    """
    times = []
    for _ in range(6):
        begin = time.process_time()
        workspace = Workspace(**OURS[contender])
        outcomes = [each for _, each in workspace.stream(stream.path)]
        times.append(time.process_time() - begin)
    seconds = statistics.median(times[1:])
    labels: NDArray[np.float32] = np.concatenate([each.label for each in outcomes])
    error = squared_error(labels, np.concatenate([each.prediction for each in outcomes]))
    return Run(
        stream.name, contender, stream.seed, len(labels), error, seconds, workspace.searching.n_switches
    )


def peer_run(stream: _Stream, contender: str, *, peer: Peer, seed: int) -> Run:
    """Run one of `PEERS`."""
    labels = [float(line.split(b"|")[0]) for line in stream.path.read_bytes().splitlines()]
    predictions, seconds = peer.run(stream.path, contender, seed=seed)
    return Run(stream.name, contender, seed, len(labels), squared_error(labels, predictions), seconds)


def table_run(stream: _Stream, contender: str, *, peer: TablePeer) -> Run:
    """Run one of `TABLE_PEERS`."""
    labels = [float(line.split(b"|")[0]) for line in stream.path.read_bytes().splitlines()]
    predictions, seconds = peer.run(stream.path, contender)
    return Run(stream.name, contender, 0, len(labels), squared_error(labels, predictions), seconds)


def _runs(
    options: argparse.Namespace, peer: Peer | None, table: TablePeer | None, directory: Path
) -> Iterator[Run]:
    """Run everything, one after the other."""
    for name in options.sets:
        source = find(name, options.data)
        if source is None:
            print(f"reg-{name} is left out: give the directory that has it with --data")
            continue
        for seed in range(options.seeds):
            stream = _Stream(name, seed, directory / f"{name}-{seed}.txt")
            stream.path.write_bytes(b"".join(lines_of(source, seed=seed, lines=options.lines)))
            for contender in OURS:
                yield our_run(stream, contender)
        stream = _Stream(name, 0, directory / f"{name}-0.txt")
        if table is not None:
            for contender in TABLE_PEERS:
                yield table_run(stream, contender, peer=table)
        if peer is not None:
            for seed in range(options.peer_seeds):
                for contender in PEERS:
                    yield peer_run(stream, contender, peer=peer, seed=seed)


def _table_peer(python: str) -> TablePeer | None:
    """LightGBM and river, unless the interpreter has not both."""
    try:
        return TablePeer(python)
    except PeerError as error:
        print(f"LightGBM and river are left out: {error}")
        return None


def _peer(python: str) -> Peer | None:
    """AutoVW, unless the interpreter has none."""
    try:
        return Peer(python)
    except PeerError as error:
        print(f"AutoVW is left out: {error}")
        return None


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    options = kit.parser(
        __doc__,
        data=kit.Option(Path, "has reg-*.txt.gz that are not in datasets/"),
        sets=kit.Option(list(SETS), choices=SETS),
        lines=kit.Option(_LINES, "of each set"),
        seeds=kit.Option(1, "the stream as it is, and random orders"),
        peer_python=kit.Option(sys.executable, "has FLAML"),
        table_python=kit.Option(sys.executable, "has LightGBM, river"),
        peer_seeds=kit.Option(1, "of AutoVW itself"),
        json=Path,
    ).parse_args(argv)
    peer, table = _peer(options.peer_python), _table_peer(options.table_python)
    with tempfile.TemporaryDirectory() as directory:
        runs = list(_runs(options, peer, table, Path(directory)))
    peers = [*(TABLE_PEERS if table else ()), *(PEERS if peer else ())]
    print(printed(runs, contenders=[*OURS, *peers]))
    verdict = verdicts(runs)
    document = {
        "lines": options.lines,
        "peer": peer.versions if peer else None,
        "table": table.versions if table else None,
        "runs": runs,
        "verdicts": verdict,
    }
    kit.write_json(options.json, document)
    return kit.print_verdicts(verdict)


if __name__ == "__main__":
    sys.exit(main())
