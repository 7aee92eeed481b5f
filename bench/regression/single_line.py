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
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench.peer_process import PeerError
from bench.regression.peer import PEERS, TABLE_PEERS, Peer, TablePeer
from bench.regression.report import Run, printed, verdicts
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


def main(argv: list[str] | None = None) -> int:
    """Print the tables; write JSON if asked to; fail if what is asked does not hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, metavar="DIR", help="has reg-*.txt.gz that are not in datasets/")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--lines", type=int, default=_LINES, help="of each set (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=1, help="the stream as it is, and random orders")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PYTHON", help="has FLAML")
    parser.add_argument(
        "--table-python", default=sys.executable, metavar="PYTHON", help="has LightGBM, river"
    )
    parser.add_argument("--peer-seeds", type=int, default=1, help="of AutoVW itself")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(argv)
    peer, table = _peer(options.peer_python), _table_peer(options.table_python)
    with tempfile.TemporaryDirectory() as directory:
        runs = list(_runs(options, peer, table, Path(directory)))
    peers = [*(TABLE_PEERS if table else ()), *(PEERS if peer else ())]
    print(printed(runs, contenders=[*OURS, *peers]))
    verdict = verdicts(runs)
    for name, holds in verdict.items():
        print(f"{'yes' if holds else 'NO':4}{name}")
    if options.json:
        document = {
            "lines": options.lines,
            "peer": peer.versions if peer else None,
            "table": table.versions if table else None,
            "runs": [asdict(run) for run in runs],
            "verdicts": verdict,
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n")
    return 0 if all(verdict.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
