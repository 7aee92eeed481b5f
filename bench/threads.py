"""Wall-clock and processor time of one learner whose ensemble has a thread of its own or not, in alternation.

    python -m bench.threads [--rounds 5] [--kinds NAME ...] [--live 4]

The kinds are those of `bench.speed_kinds.streams`, and the committed logs of bandits, without ``cb-``.
Printed are medians in microseconds for an event, and the median of one thread's wall-clock time divided by
that of two threads in the same round. The exit code is 1 if predictions, decisions or models differ.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench import kit
from bench.speed_kinds.streams import KINDS
from onlineauto import Workspace

DATASETS = Path(__file__).resolve().parents[1] / "datasets"
THREADS = 1, 2


class Run(NamedTuple):
    """The seconds that learning a stream took, and a digest of the results."""

    wall: float
    cpu: float
    digest: str


def write(kind: str, file: Path) -> int:
    """Write a stream, and return its number of events."""
    if kind in KINDS:
        return KINDS[kind].write(file)
    text = gzip.decompress((DATASETS / f"cb-{kind}.txt.gz").read_bytes())
    file.write_bytes(text)
    return text.count(b"\n\n")


def learn(file: Path, live: int, threads: int) -> Run:
    """Learn a stream, and return what it took."""
    workspace, digest = Workspace(cb_explore_adf=True, live_configs=live), hashlib.sha256()
    workspace.use_threads(threads)
    workspace.observe(lambda entry: digest.update(repr(entry).encode()))
    wall, cpu = time.perf_counter(), time.process_time()
    for _, outcomes in workspace.stream(str(file)):
        for array in (outcomes.rows, outcomes.action, outcomes.score):
            digest.update(array.tobytes())
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    model = io.BytesIO()
    workspace.save(model)
    digest.update(model.getvalue())
    return Run(wall, cpu, digest.hexdigest())


def main() -> int:
    """Measure, print a table, and return the exit code."""
    kinds, same = ["letter-u", "surveys-u", "flights-u", *KINDS], True
    given = kit.parser(__doc__, rounds=5, kinds=kinds, live=4).parse_args()
    print(kit.table(["stream", "wall: 1, 2 threads", "CPU: 1, 2 threads", "wall, 1 / 2"]))
    with tempfile.TemporaryDirectory() as directory:
        for kind in given.kinds:
            file = Path(directory) / "stream.txt"
            events = write(kind, file)
            runs = kit.samples(THREADS, given.rounds, partial(learn, file, given.live))
            same = same and len({run.digest for taken in runs.values() for run in taken}) == 1
            walls, cpus = (
                [f"{median(getattr(run, clock) for run in runs[n]) / events * 1e6:.3g}" for n in THREADS]
                for clock in ("wall", "cpu")
            )
            gain = median(one.wall / two.wall for one, two in zip(runs[1], runs[2], strict=True))
            print(f"| {kind} | {', '.join(walls)} | {', '.join(cpus)} | {gain:.2f} |", flush=True)
    if not same:
        print("predictions, decisions or models differ", file=sys.stderr)
    return int(not same)


if __name__ == "__main__":
    sys.exit(main())
