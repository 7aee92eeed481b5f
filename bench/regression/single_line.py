"""Single lines: progressive squared error and speed beside FLAML's AutoVW, on five regression sets.

    python -m bench.regression.single_line [--data DIR] [--seeds 5]
        [--peer-python PYTHON] [--peer-seeds 5] [--json FILE]

Each set gives its first 8,000 lines, and a prediction is clipped to the range of the labels so far. Seed 0 is
the stream as it is; for us, other seeds are random orders of its lines, and AutoVW (5 live models) has a seed
of its own. The speed is lines a second of CPU without imports, of ours the median of five warm runs.
``--peer-python`` has flaml 2.7.0, scikit-learn, pandas and vowpalwabbit 9.11.9; ``--table-python`` has
LightGBM, refitted every 2,000 lines, and river. ``--data`` has ``reg-synth`` and ``reg-births``, which are
not committed. "ensemble", "mix" and "champion" are ``--automl 4`` with each ``--predict_with``; the first is
the default.
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
    "ensemble": {"automl": 4},
    "mix": {"automl": 4, "predict_with": "mix"},
    "champion": {"automl": 4, "predict_with": "champion"},
}
"""Options of our contenders."""

_DATASETS = Path(__file__).resolve().parents[2] / "datasets"
_LINES = 8000

_TIMES = 300

PEERS = {"AutoVW NI": False, "AutoVW NI+LR": True}
"""What AutoVW searches: interactions, and whether learning rates as well."""
TABLE_PEERS = ("LightGBM", "river linear", "river tree", "river forest")
"""Peers that take columns of names and numbers."""
_TABLE_WORKER = Path(__file__).with_name("table_worker.py")
_WORKER = Path(__file__).with_name("peer_worker.py")


class Peer:
    """A worker in the environment of an interpreter: AutoVW, or LightGBM and river."""

    def __init__(self, python: str, worker: Path) -> None:
        self._python, self._worker = python, worker
        self.versions: dict[str, str] = ask(python, worker)["versions"]

    def run(self, stream: _Stream, contender: str, **request: Any) -> Run:
        """Predict and learn each line of a stream."""
        labels = [float(line.split(b"|")[0]) for line in stream.path.read_bytes().splitlines()]
        answer = ask(self._python, self._worker, file=str(stream.path), **request)
        error = squared_error(labels, answer["predictions"])
        seed, lines = request.get("seed", 0), len(labels)
        return Run(stream.name, contender, seed, lines, error, answer["seconds"])


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
    """Return the error on the stream as it is: ours, or the median over AutoVW's own seeds."""
    return median(run.error for run in runs) if _is_peer(runs[0].contender) else runs[0].error


def _ratio(row: dict[str, list[Run]]) -> float:
    """Return the ratio of lines per second to the faster AutoVW."""
    peers = [median(run.speed for run in runs) for contender, runs in row.items() if _is_peer(contender)]
    return median(run.speed for run in row["ensemble"]) / max(peers)


def _spread(values: Sequence[float]) -> str:
    """Return the median and the range, if there are several."""
    if min(values) == max(values):
        return f"{values[0]:.4f}"
    return f"{median(values):.4f} ({min(values):.4f}-{max(values):.4f})"


def printed(runs: Sequence[Run], *, contenders: Sequence[str]) -> str:
    """Make the tables."""
    table = _table(runs)
    native = [contender for contender in contenders if not _is_peer(contender)]
    peers = len(native) < len(contenders)
    as_it_is, orders, speeds = [], [], []
    for name, row in table.items():
        errors = {contender: [run.error for run in row[contender]] for contender in contenders}
        as_it_is.append(
            [name, *(_spread(found if _is_peer(c) else found[:1]) for c, found in errors.items())]
        )
        orders.append([name, *(_spread(errors[contender]) for contender in native)])
        speeds.append([name, *(f"{median(run.speed for run in row[c]):,.0f}" for c in contenders)])
        speeds[-1] += [f"{_ratio(row):,.0f}"] if peers else []
    several = max(len(row["plain"]) for row in table.values()) if table else 0
    lines = ["squared error, median (range) over seeds; ours on the stream as it is"]
    lines += ["", kit.table(["", *contenders], as_it_is)]
    if several > 1:
        lines += ["", f"ours, on the stream as it is and {several - 1} random orders of it"]
        lines += ["", kit.table(["", *native], orders)]
    lines += ["", "lines a second of CPU" + "; ensemble over the faster AutoVW" * peers]
    lines += ["", kit.table(["", *contenders, *["ratio"] * peers], speeds)]
    return "\n".join([*lines, ""])


def verdicts(runs: Sequence[Run]) -> dict[str, bool]:
    """Return each target that has a peer to compare with, and whether it is met."""
    rows = list(_table(runs).values())
    plain = sum(_error(row["ensemble"]) < min(_error(row["plain"]), _error(row["-q ::"])) for row in rows)
    asked = {"less error than the better of plain and -q ::, on all sets but one": plain >= len(rows) - 1}
    if all("AutoVW NI+LR" in row for row in rows):
        asked["less error than AutoVW NI+LR, on every set"] = all(
            _error(row["ensemble"]) < _error(row["AutoVW NI+LR"]) for row in rows
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
    """Return the path of a set, in the repository or in the directory of other sets."""
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


def _runs(
    options: argparse.Namespace, peer: Peer | None, table: Peer | None, directory: Path
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
                yield table.run(stream, contender, who=contender)
        if peer is not None:
            for seed in range(options.peer_seeds):
                for contender, learning_rate in PEERS.items():
                    yield peer.run(stream, contender, seed=seed, learning_rate=learning_rate)


def _peer(who: str, python: str, worker: Path) -> Peer | None:
    """Return a peer, unless the interpreter does not have it."""
    try:
        return Peer(python, worker)
    except PeerError as error:
        print(f"{who} is left out: {error}")
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
    peer = _peer("AutoVW", options.peer_python, _WORKER)
    table = _peer("LightGBM and river", options.table_python, _TABLE_WORKER)
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
