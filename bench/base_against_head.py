"""Two commits on the same streams, in alternation: what a change costs.

    python -m bench.base_against_head BASE HEAD [--rounds 7] [--tolerance 0.1] [--only WORKLOAD ...]

Each commit is checked out into a temporary directory and runs in a separate process, with kernels compiled
into a separate directory; ``.`` in place of a commit is the working tree as it is. The exit code is 1 if
head is slower on a workload by more than the tolerance.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench import kit
from bench.speed.table import CONTENDERS, STREAMS
from bench.speed.workers import OUR_WORKER, Worker, WorkerError
from datasets.generate import write

REPOSITORY = Path(__file__).resolve().parents[1]
"""Whose commits these are."""

WORKLOADS = {
    "reading": ("long", "read", {"cb_adf": True}),
    "narrow -q ::": ("narrow", "fit", {"cb_explore_adf": True, "quadratic": "::"}),
    "narrow automl 4": ("narrow", "fit", CONTENDERS["ours narrow automl 4"].options),
    "exact automl 4": ("narrow", "fit", CONTENDERS["ours exact automl 4"].options),
    "wide automl 4": ("wide", "fit", CONTENDERS["ours wide automl 4"].options),
}
"""Stream, task and options of each workload."""


@contextmanager
def checked_out(revision: str, *, directory: Path) -> Iterator[Path]:
    """Yield a directory with a commit's files; ``.`` is the working tree itself."""
    if revision == ".":
        yield REPOSITORY
        return
    _git("worktree", "add", "--quiet", "--detach", str(directory), revision)
    try:
        yield directory
    finally:
        _git("worktree", "remove", "--force", str(directory))


def _git(*words: str) -> None:
    subprocess.run(["git", *words], cwd=REPOSITORY, check=True)


@contextmanager
def worker_of(revision: str, *, name: str, directory: Path) -> Iterator[Worker]:
    """Yield a worker that runs a commit, and make sure that it does."""
    with checked_out(revision, directory=directory / name) as tree:
        environment = {
            **os.environ,
            "PYTHONPATH": str(tree),
            "ONLINEAUTO_CACHE_DIR": str(directory / f"{name}-kernels"),
        }
        with Worker(OUR_WORKER, directory=tree, environment=environment) as worker:
            package = Path(str(worker.greeting["package"])).resolve()
            if not package.is_relative_to(tree.resolve()):
                raise WorkerError(f"{revision} was to run, but onlineauto was imported from {package.parent}")
            yield worker


def compare(
    workers: Mapping[str, Worker], *, names: Sequence[str], rounds: int, directory: Path, share: float = 1
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of each workload and each worker, who take turns in going first.

    A first run of each, which compiles, is not counted.
    """
    seconds: dict[str, dict[str, list[float]]] = {}
    for name in names:
        stream, task, options = WORKLOADS[name]
        file = directory / f"{stream}.txt"
        if not file.exists():
            kind, events = STREAMS[stream]
            write(file, kind=kind, events=max(1, round(events * share)))
        request = {"task": task, "options": options, "file": str(file)}
        runs = kit.samples(workers, rounds, lambda side, asked=request: workers[side].ask(**asked))  # type: ignore[misc]
        seconds[name] = {side: [run["seconds"] for run in taken] for side, taken in runs.items()}
    return seconds


def slower(seconds: Mapping[str, Mapping[str, Sequence[float]]], *, tolerance: float) -> list[str]:
    """Return the workloads on which the median of head exceeds that of base by more than the tolerance."""
    return [
        name
        for name, took in seconds.items()
        if median(took["head"]) > (1 + tolerance) * median(took["base"])
    ]


def _table(seconds: Mapping[str, Mapping[str, Sequence[float]]], late: Sequence[str]) -> Iterator[str]:
    yield f"{'workload':16} {'base s':>9} {'head s':>9} {'head/base':>10} {'spread':>8}"
    for name, took in seconds.items():
        base, head = median(took["base"]), median(took["head"])
        spread = max(max(side) / min(side) for side in took.values())
        note = "  slower" if name in late else ""
        yield f"{name:16} {base:9.4f} {head:9.4f} {head / base:10.3f} {spread:8.2f}{note}"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = kit.parser(__doc__, rounds=7, tolerance=0.1, share=kit.Option(1.0, "part of each stream"))
    parser.add_argument("base", help="a commit, or . for the working tree")
    parser.add_argument("head", help="a commit, or . for the working tree")
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), metavar="WORKLOAD")
    options = parser.parse_args(argv)
    if options.rounds < 1 or not 0 < options.share <= 1 or options.tolerance < 0:
        parser.error("give at least one round, a share above 0 and up to 1, and a tolerance of at least 0")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Compare two commits and print what each workload takes."""
    options = _arguments(argv)
    with tempfile.TemporaryDirectory() as temporary, ExitStack() as stack:
        directory = Path(temporary)
        revisions = {"base": options.base, "head": options.head}
        workers = {
            name: stack.enter_context(worker_of(revision, name=name, directory=directory))
            for name, revision in revisions.items()
        }
        names = options.only or list(WORKLOADS)
        seconds = compare(
            workers, names=names, rounds=options.rounds, directory=directory, share=options.share
        )
    late = slower(seconds, tolerance=options.tolerance)
    print("\n".join(_table(seconds, late)))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
