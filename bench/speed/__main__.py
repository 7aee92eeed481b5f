"""The table of speed: onlineauto beside VW, each figure from medians of alternating runs.

    python -m bench.speed [--rounds 5] [--only ROW ...] [--json FILE]

VW runs in a child of a process that has imported it, timed around ``Workspace(arg_list).finish()``;
ours runs in a process that has run the same once before, timed around ``Workspace(...).fit(file)``. Every
round runs everything once, every second round in reverse order; an uncounted round goes before. What
importing and loading kernels takes is reported apart. The exit code is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bench import kit
from bench.speed.machine import commit, machine, versions
from bench.speed.process import cold, run
from bench.speed.table import CONTENDERS, ROWS, STREAMS, Contender, Row, Samples, contenders_of, figures_of
from bench.speed.workers import OUR_WORKER, VW_WORKER, Worker
from datasets.generate import write

COLD_ROUNDS = 3
"""A cold start is long and varies little: no more rounds of it than this, and none that does not count."""


class Field:
    """The streams, and a worker for each side, with which contenders run."""

    def __init__(self, directory: Path, *, share: float = 1) -> None:
        self._directory, self._share = directory, share
        self._stack = ExitStack()
        self._workers: dict[str, Worker] = {}
        self.start_up: dict[str, float] = {}

    def __enter__(self) -> Self:
        """Take the field."""
        return self

    def __exit__(self, *what: object) -> None:
        """End the workers."""
        self._stack.close()

    def stream(self, name: str) -> Path:
        """Return the file of a stream, written if it is not there."""
        path = self._directory / f"{name}.txt"
        if not path.exists():
            kind, events = STREAMS[name]
            write(path, kind=kind, events=max(1, round(events * self._share)))
        return path

    def run(self, contender: Contender) -> dict[str, float]:
        """Run a contender once."""
        if contender.by == "process":
            return self._run_process(contender)
        file = str(self.stream(contender.stream))
        worker = self._worker(contender.by)
        if contender.by == "vw":
            argv = [*contender.flags, "-d", file]
            return worker.ask(argv=argv, directory=str(self._directory))
        return worker.ask(task=contender.task, options=contender.options, file=file)

    def _run_process(self, contender: Contender) -> dict[str, float]:
        if contender.task == "cold":
            return cold()
        data = ["-d", str(self.stream(contender.stream))] if contender.flags[0] == "learn" else []
        numbers = run([*contender.flags, *data])
        if numbers.pop("code") != 0:
            raise RuntimeError(f"{contender.command()} failed")
        return numbers

    def _worker(self, by: str) -> Worker:
        if by not in self._workers:
            if by == "ours":
                self._load()
            script = VW_WORKER if by == "vw" else OUR_WORKER
            self._workers[by] = self._stack.enter_context(Worker(script))
            name = "import vowpalwabbit" if by == "vw" else "import onlineauto"
            self.start_up[name] = self._workers[by].greeting["import_seconds"]
        return self._workers[by]

    def _load(self) -> None:
        """Measure what our first run in a process takes more than the second, the kernels being compiled."""
        file, options = str(self.stream("short")), CONTENDERS["ours narrow automl 4"].options
        for _ in range(2):  # the first may compile
            with Worker(OUR_WORKER) as worker:
                first, second = (worker.ask(task="fit", options=options, file=file) for _ in range(2))
        self.start_up["our first run more than the second (imports, kernels from the disk)"] = (
            first["seconds"] - second["seconds"]
        )


def measure(rows: Sequence[Row], *, rounds: int, field: Field, say: Callable[[str], object]) -> Samples:
    """Run what the rows need, in alternation."""
    contenders = contenders_of(tuple(rows))
    samples: Samples = {contender.name: {} for contender in contenders}
    for number, contender in kit.turns(contenders, rounds):
        is_cold = contender.task == "cold"
        if is_cold and not 0 < number <= COLD_ROUNDS:
            continue
        numbers = field.run(contender)
        say(f"{'warm-up' if number == 0 else f'round {number}'}: {contender.name}: {_brief(numbers)}")
        if number:
            for name, value in numbers.items():
                samples[contender.name].setdefault(name, []).append(value)
    return samples


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _brief(numbers: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in numbers.items())


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = kit.parser(
        __doc__, rounds=5, json=Path, share=kit.Option(1.0, "part of each stream; figures need all of it")
    )
    parser.add_argument("--only", nargs="+", choices=[row.name for row in ROWS], metavar="ROW")
    options = parser.parse_args(argv)
    if options.rounds < 1 or not 0 < options.share <= 1:
        parser.error("give at least one round, and a share above 0 and up to 1")
    return options


def _command(options: argparse.Namespace) -> str:
    words = ["python", "-m", "bench.speed", "--rounds", str(options.rounds)]
    if options.only:
        words += ["--only", *options.only]
    if options.share != 1:
        words += ["--share", str(options.share)]
    return shlex.join(words)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, write JSON if asked to; 1 if a target is missed."""
    options = _arguments(argv)
    rows = [row for row in ROWS if not options.only or row.name in options.only]
    with tempfile.TemporaryDirectory() as directory, Field(Path(directory), share=options.share) as field:
        samples = measure(rows, rounds=options.rounds, field=field, say=_tell)
        start_up = field.start_up
    figures = figures_of(rows, samples)
    kit.printed(figure.as_json() for figure in figures)
    for name, seconds in start_up.items():
        print(f"start-up, in no figure above: {name}: {seconds:.3f} s")
    if "cold" in samples:
        print(f"kernels compiled after `onlineauto warmup`: {max(samples['cold']['missed']):.0f}")
    document = {
        "command": _command(options),
        "rounds": options.rounds,
        "share": options.share,
        "commit": commit(),
        "machine": machine(),
        "versions": versions(),
        "start_up": start_up,
        "rows": [figure.as_json() for figure in figures],
        "samples": {
            name: {"command": CONTENDERS[name].command(), "stream": CONTENDERS[name].stream, **numbers}
            for name, numbers in samples.items()
        },
    }
    kit.write_json(options.json, document)
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
